from __future__ import annotations

from pipeline.data.speech.synthetic import commands, part_of


def test_parts_share_no_sentence_and_let_duplicates_stand() -> None:
    drawn = {part: commands(part, 600, 0) for part in ("train", "dev", "test")}
    for part, sentences in drawn.items():
        assert len(sentences) == 600
        assert len(set(sentences)) < 600
        assert {part_of(sentence) for sentence in sentences} == {part}


def test_the_vocabulary_is_small_and_every_part_has_all_of_it() -> None:
    for part in ("train", "dev", "test"):
        sentences = commands(part, 600, 0)
        assert len({word for sentence in sentences for word in sentence.split()}) == 24
        assert max(len(sentence.split()) for sentence in sentences) <= 10


def test_seed_and_purpose_draw_other_sentences_and_the_same_ones_again() -> None:
    assert commands("test", 50, 0) == commands("test", 50, 0)
    assert commands("test", 50, 0) != commands("test", 50, 1)
    assert commands("test", 50, 0) != commands("test", 50, 0, "harder")

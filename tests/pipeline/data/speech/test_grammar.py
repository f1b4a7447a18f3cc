from __future__ import annotations

from pipeline.data.speech.synthetic import commands, part_of


def test_subsets_share_no_sentence_and_keep_duplicates() -> None:
    drawn = {part: commands(part, 600, 0) for part in ("train", "dev", "test")}
    for part, sentences in drawn.items():
        assert len(sentences) == 600
        assert len(set(sentences)) < 600
        assert {part_of(sentence) for sentence in sentences} == {part}


def test_vocabulary_is_small_and_complete_in_every_subset() -> None:
    for part in ("train", "dev", "test"):
        sentences = commands(part, 600, 0)
        assert len({word for sentence in sentences for word in sentence.split()}) == 24
        assert max(len(sentence.split()) for sentence in sentences) <= 10


def test_sentences_depend_only_on_seed_and_purpose() -> None:
    assert commands("test", 50, 0) == commands("test", 50, 0)
    assert commands("test", 50, 0) != commands("test", 50, 1)
    assert commands("test", 50, 0) != commands("test", 50, 0, "harder")

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.subwords import SentencePieceModel, detokenise
from pipeline.data.task_subwords import evenly_spaced, learn_subwords, subword_counts
from pipeline.errors import ConfigError

TEXTS = [
    f"{verb} the {noun} of {place}…"
    for verb in ("Open", "Close", "Öffnen", "Schließen")
    for noun in ("door", "window", "Fenster", "Türen")
    for place in ("the house", "a château", "das Büro")
]


UNITS = learn_subwords(TEXTS, 100)


def test_same_texts_give_the_same_bytes() -> None:
    assert learn_subwords(TEXTS, 100).model == UNITS.model


def test_unigram_model_differs_from_bpe_and_restores_the_text() -> None:
    bpe, unigram, again = (
        learn_subwords(TEXTS, 38, required_characters="q", model_type=model_type)
        for model_type in ("bpe", "unigram", "unigram")
    )
    assert unigram.model == again.model
    assert unigram.subwords(TEXTS[0]) != bpe.subwords(TEXTS[0])
    assert "q" in unigram.vocabulary()
    assert [detokenise(unigram.subwords(text)) for text in TEXTS] == TEXTS


@given(st.lists(st.sampled_from(" ".join(TEXTS).split()), min_size=1).map(" ".join))
def test_subwords_restore_the_text(text: str) -> None:
    assert detokenise(UNITS.subwords(text)) == text


@pytest.mark.parametrize("space", ["\r", "\u2028", "\x85", "\f", "\t", "  ", "\u00a0"])
def test_any_white_space_is_a_space_to_the_model(space: str) -> None:
    assert UNITS.subwords(f"Open{space}the door") == UNITS.subwords("Open the door")


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_blank_text_has_no_subwords(blank: str) -> None:
    assert UNITS.subwords(blank) == []
    assert detokenise([]) == ""


def test_vocabulary_has_every_subword_and_no_control_symbol() -> None:
    vocabulary = UNITS.vocabulary()
    assert len(vocabulary) == len(set(vocabulary)) == 97
    assert {subword for text in TEXTS for subword in UNITS.subwords(text)} <= set(vocabulary)
    assert not {"<unk>", "<s>", "</s>"} & set(vocabulary)


def test_files_restore_the_model(tmp_path: Path) -> None:
    UNITS.write(tmp_path / "model", tmp_path / "vocab")
    units = SentencePieceModel((tmp_path / "model").read_bytes())
    assert units.subwords(TEXTS[0]) == UNITS.subwords(TEXTS[0])
    lines = (tmp_path / "vocab").read_bytes().decode().split("\n")
    assert lines == [*UNITS.vocabulary(), ""]


def test_counts_are_in_the_order_of_the_vocabulary() -> None:
    counts = subword_counts(["c", "a", "b"], [["a", "b"], ["a"]])
    assert list(counts.items()) == [("c", 0), ("a", 2), ("b", 1)]


def test_vocabulary_size_that_does_not_suit_the_text_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^data\.vocabulary_size: does not suit .*got 10000"):
        learn_subwords(TEXTS, 10_000)
    # One hundred characters, the mark of a word's beginning and three control symbols.
    characters = [chr(0x4E00 + number) for number in range(100)]
    with pytest.raises(ConfigError, match=r"^data\.vocabulary_size: must be at least 104.*got 64"):
        learn_subwords(characters, 64)


def test_sample_has_all_lines_up_to_the_limit_and_then_both_sides() -> None:
    sides = [f"{language} {number}" for number in range(100) for language in ("de", "en")]
    assert list(evenly_spaced(sides, 200, 200)) == sides
    sample = list(evenly_spaced(sides, 200, 60))
    assert 40 <= len(sample) <= 60
    assert {side[:2] for side in sample} == {"de", "en"}
    assert abs(sum(side[:2] == "de" for side in sample) - len(sample) / 2) <= 1

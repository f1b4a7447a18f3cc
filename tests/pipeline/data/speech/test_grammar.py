from __future__ import annotations

import re

import pytest

from pipeline.data.speech import synthetic
from pipeline.data.speech.synthetic import commands, part_of
from pipeline.errors import DataError

_WORDS = 33
_SETS = [("train", ""), ("dev", ""), ("test", ""), ("test", "harder")]


def test_parts_share_no_sentence() -> None:
    for part, purpose in _SETS:
        sentences = commands(part, 1000, 0, purpose)
        assert len(sentences) == 1000
        assert {part_of(sentence) for sentence in sentences} == {part}


@pytest.mark.parametrize("n_sentence", [400, 1000, 3000])
@pytest.mark.parametrize(("part", "purpose"), _SETS[1:])
def test_no_sentence_is_twice_in_a_dev_or_test_set(
    part: str, purpose: str, n_sentence: int
) -> None:
    assert len(set(commands(part, n_sentence, 0, purpose))) == n_sentence


def test_short_commands_repeat_in_training() -> None:
    sentences = commands("train", 3000, 0)
    assert 2000 < len(set(sentences)) < 3000
    assert min(len(sentence.split()) for sentence in sentences) == 3


@pytest.mark.slow
def test_more_test_sentences_than_the_grammar_has_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"data\.test_sentences: there are too few .* at most 5\d{3}"
    ):
        commands("test", 8000, 0)


def test_as_many_test_sentences_as_the_message_says_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(synthetic, "_MOST_DRAWS", 4000)
    with pytest.raises(DataError) as error:
        commands("test", 8000, 0)
    (most,) = re.findall(r"at most (\d+)", str(error.value))
    assert len(commands("test", int(most), 0)) == int(most)


def test_vocabulary_is_small_and_complete_in_every_set() -> None:
    for part, purpose in _SETS:
        sentences = commands(part, 400, 0, purpose)
        assert len({word for sentence in sentences for word in sentence.split()}) == _WORDS
        assert max(len(sentence.split()) for sentence in sentences) <= 10


def test_sentences_depend_only_on_seed_and_purpose() -> None:
    assert commands("test", 50, 0) == commands("test", 50, 0)
    assert commands("test", 50, 0) != commands("test", 50, 1)
    assert commands("test", 50, 0) != commands("test", 50, 0, "harder")

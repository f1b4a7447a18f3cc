from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from pipeline.quality.alignment import (
    levenshtein_paths,
    missing_before,
    nist_path,
    nist_paths,
    word_of_token,
    wrong_words,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "sclite_paths.tsv"
WORDS = st.lists(st.sampled_from("abc"), max_size=8)


def golden() -> list[list[str]]:
    lines = GOLDEN.read_text(encoding="utf-8").split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def test_nist_paths_equal_those_of_sclite() -> None:
    references, hypotheses, paths = zip(*golden(), strict=True)
    ours = nist_paths([text.split() for text in references], [text.split() for text in hypotheses])
    assert len(ours) > 400
    assert ours == list(paths)


def test_levenshtein_paths_differ_from_sclite() -> None:
    """The reason why jiwer's alignments do not label token errors (decision record 6)."""
    references, hypotheses, paths = zip(*golden(), strict=True)
    shortest = levenshtein_paths(
        [text.split() for text in references], [text.split() for text in hypotheses]
    )
    pairs = list(zip(shortest, paths, strict=True))
    assert sum(path == sclite for path, sclite in pairs) == 217
    assert ("CDDC", "DDCC") in pairs  # the the the cat -> the cat
    assert ("CDCCCSS", "CDCCCDCI") in pairs  # sclite prefers matches to fewer steps


@given(WORDS, WORDS)
def test_every_path_spells_both_texts_and_levenshtein_is_shortest(
    reference: list[str], hypothesis: list[str]
) -> None:
    (shortest,) = levenshtein_paths([reference], [hypothesis])
    for path in (nist_path(reference, hypothesis), shortest):
        assert len(path) - path.count("I") == len(reference)
        assert len(path) - path.count("D") == len(hypothesis)
    edits = len(shortest) - shortest.count("C")
    assert edits == Levenshtein.distance(reference, hypothesis)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [("", []), ("D", []), ("CSIDC", [False, True, True, False]), ("IIC", [True, True, False])],
)
def test_substitutions_and_insertions_are_errors(path: str, wrong: list[bool]) -> None:
    assert wrong_words(path) == wrong


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("", [False]),
        ("DD", [True]),
        ("DCSDDI", [True, False, True, False]),
        ("CD", [False, True]),
    ],
)
def test_a_missing_word_is_before_the_next_word_or_the_end(path: str, missing: list[bool]) -> None:
    assert missing_before(path) == missing


@pytest.mark.parametrize(
    ("subwords", "words"),
    [
        (["▁turn", "▁the", "▁la", "mp"], [0, 1, 2, 2]),
        (["turn", "▁", "on"], [0, 1, 1]),
        (["▁", "▁on", "▁"], [0, 0, 0]),
        (["▁a▁b", "c"], [0, 1]),
        (["▁3:", "15,", "▁-2"], [0, 0, 1]),
        (["▁", "▁"], [-1, -1]),
        ([], []),
    ],
)
def test_subwords_belong_to_words(subwords: list[str], words: list[int]) -> None:
    assert word_of_token(subwords) == words

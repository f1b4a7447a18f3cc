"""Files of external scores: both forms, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.external_scores import ExternalScores, read_external_scores
from pipeline.run.settings import ScoresConfig

Read = Callable[..., list[float]]
HEADER = "sentence_id\tscore\n"


def decode(path: Path, texts: list[str | None]) -> Decode:
    cell = Cell("task", "talks", "random_init", "prex", "beam")
    sources, references = ["a source"] * len(texts), list(texts)
    return Decode(path / "store.h5", cell, True, ("seed_1",), sources, texts, references)


@pytest.fixture
def scores_of(tmp_path: Path) -> Callable[..., ExternalScores]:
    """Return a function that reads a file as the scores of a decode of three sentences."""

    def scores(content: str | bytes, higher_is_better: bool = True) -> ExternalScores:
        path = tmp_path / "task talks.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        setting = ScoresConfig(f"{tmp_path}/{{task}} {{test_set}}.tsv", higher_is_better)
        decodes = {"part": decode(tmp_path, ["a b", "c", None])}
        (kind,) = read_external_scores({"da": setting}, "task", decodes)
        return kind

    return scores


@pytest.fixture
def read(scores_of: Callable[..., ExternalScores]) -> Read:
    def values(content: str | bytes) -> list[float]:
        (of_decode,) = scores_of(content).values.values()
        return list(of_decode.tolist())

    return values


@pytest.mark.parametrize(
    "content",
    [
        "0.5\n-2\n1e2\n",
        "0.5\n-2\n1e2",
        " .5 \r\n-2.\r\n+100\r\n",
        "\N{BYTE ORDER MARK}0.5\n-2\n1e2\n",
        HEADER + "0\t0.5\n1\t-2\n2\t100\n",
        HEADER + "2\t100\n0\t0.5\n1\t-2\n",
        "system\tscore\thypothesis\tsentence_id\nx\t0.5\ta  b\t0\nx\t-2\tc\t1\nx\t100\t\t2\n",
    ],
)
def test_scores_come_by_line_or_by_sentence(content: str, read: Read) -> None:
    assert read(content) == [0.5, -2, 100]


@pytest.mark.parametrize("content", ["1\n\n2\n", HEADER + "0\t1\n1\t\n2\t2\n"])
def test_an_empty_score_is_a_sentence_that_was_not_scored(content: str, read: Read) -> None:
    np.testing.assert_array_equal(read(content), [1, np.nan, 2])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1\n2\n", "has 2 lines, but the decode has 3 sentences"),
        ("1\n2\n3\n\n", "has 4 lines, but the decode has 3 sentences"),
        ("", "has 1 lines, but the decode has 3 sentences"),
        ("1\n2\nnan\n", r"line 3: a score must be a finite number \(got 'nan'\)"),
        ("1\n2\ninf\n", r"line 3: a score must be a finite number \(got 'inf'\)"),
        ("1\n2\n1e999\n", r"line 3: a score must be a finite number \(got '1e999'\)"),
        ("1\n0,5\n3\n", r"line 2: a score must be a finite number \(got '0,5'\)"),
        ("1\n1_0\n3\n", r"line 2: a score must be a finite number \(got '1_0'\)"),
        ("comet\n1\n2\n", r"line 1: a score must be a finite number \(got 'comet'\).*first line"),
        ("1\n2\t9\n3\n", "line 2 has 2 columns, the first line has one"),
        ("score\n1\n2\n3\n", r"the first line must name .* each once \(got score\)"),
        ("id\tscore\n0\t1\n", r"the first line must name the columns .* \(got id, score\)"),
        ("0\t1\n1\t2\n2\t3\n", r"the first line must name the columns .* \(got 0, 1\)"),
        ("sentence_id\tscore\tscore\n0\t1\t1\n", "the first line must name .* each once"),
        (HEADER + "0\t1\n1\t2\n", r"has no line for 1 of 3 sentences \(sentence_id 2\)"),
        (HEADER + "0\t1\n1\t2\n1\t3\n", "line 4 repeats sentence_id 1 of line 3"),
        (HEADER + "0\t1\n1\t2\n3\t3\n", r"line 4: .* from 0 to 2, .* \(got '3'\)"),
        (HEADER + "0\t1\n-1\t2\n2\t3\n", r"line 3: .* from 0 to 2, .* \(got '-1'\)"),
        (HEADER + "0\t1\n1.0\t2\n2\t3\n", r"line 3: .* from 0 to 2, .* \(got '1\.0'\)"),
        (HEADER + "0\t1\n1\t2\t3\n2\t3\n", "line 3 has 3 columns, the first line has 2"),
        (HEADER + "0\t1\n1\tNA\n2\t3\n", r"line 3: a score must be a finite number \(got 'NA'\)"),
        (
            "sentence_id\tscore\thypothesis\n0\t1\ta b\n1\t2\td\n2\t3\t\n",
            r"line 3: hypothesis is not that of the decode \(got 'd', expected 'c'\)",
        ),
        (b"\xff\n1\n2\n", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_list_of_scores_is_refused(
    content: str | bytes, words: str, read: Read
) -> None:
    with pytest.raises(DataError, match=rf"task talks\.tsv: {words}"):
        read(content)


def test_badness_is_higher_where_the_score_is_worse(
    scores_of: Callable[..., ExternalScores], tmp_path: Path
) -> None:
    own = decode(tmp_path, ["a b", "c", None])
    assert scores_of("1\n2\n3\n").badness(own).tolist() == [-1, -2, -3]
    assert scores_of("1\n2\n3\n", higher_is_better=False).badness(own).tolist() == [1, 2, 3]


def test_the_signature_names_the_direction_and_the_content_of_the_file(
    scores_of: Callable[..., ExternalScores], tmp_path: Path
) -> None:
    own = decode(tmp_path, ["a b", "c", None])
    contents = [("1\n2\n3\n", True), ("1\n2\n4\n", True), ("1\n2\n3\n", False)]
    signatures = [scores_of(*content).signature([own]) for content in contents]
    assert len(set(signatures)) == 3
    assert signatures[0].startswith("score:da|better:higher|files:")

"""Which tokens and sentences are forecasts, from a small store by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.metrics.calibration import (
    BestTokens,
    best_tokens,
    sentence_forecasts,
    token_forecasts,
)
from pipeline.metrics.decodes import Decode
from pipeline.quality.registry import QUALITIES
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics


def hypothesis(ids: list[int], logprob: list[float]) -> Hypothesis:
    plain = {name: np.ones(len(ids)) for name in TokenStatistics.__dataclass_fields__}
    of_member = {
        "logprob": np.array(logprob)[:, np.newaxis],
        "entropy_member": np.ones((len(ids), 1)),
    }
    return Hypothesis(np.array(ids), "text", 0.0, True, TokenStatistics(**(plain | of_member)))


@pytest.fixture
def decode(measured: Any, tmp_path: Path) -> Decode:
    """A single member's decode of four sentences; the second has no hypothesis."""
    path = tmp_path / "store.h5"
    half = float(np.log(0.5))
    first = [hypothesis([4, 5, 2], [half, 5e-3, 2 * half]), hypothesis([9], [half])]
    with StoreWriter(
        path, members=["m"], vocab_size=10, regime="beam", combination="prex"
    ) as store:
        for place, hypotheses in enumerate(
            [first, [], [hypothesis([6, 2], [0.0, half])], [hypothesis([2], [half])]]
        ):
            store.add_sentence(place, "source", "text", hypotheses)
    made: Decode = measured([0] * 4, ["t", None, "t", "t"], ["t"] * 4).decode
    return replace(made, path=path, cell=replace(made.cell, hypotheses="-"))


def test_the_tokens_of_first_hypotheses(decode: Decode, tmp_path: Path) -> None:
    """A stored log-probability a little above 0 is certain."""
    found = best_tokens(decode, tmp_path / "none")
    assert found.sentence.tolist() == [0, 0, 0, 2, 2, 3]
    assert found.token_id.tolist() == [4, 5, 2, 6, 2, 2]
    assert found.probability == pytest.approx([0.5, 1, 0.25, 1, 0.5, 0.5])


def test_the_tokens_of_an_ensemble_are_those_of_its_measures(
    decode: Decode, tmp_path: Path
) -> None:
    path = tmp_path / "token.parquet"
    columns = {
        "sentence_id": [0, 0, 0, 1],
        "hypothesis": [0, 0, 1, 0],
        "token_id": [7, 2, 2, 2],
        "prex_score": [np.log(4), -5e-3, 0.0, 0.0],
        "expr_score": [np.log(2), 0.0, 0.0, np.inf],
    }
    pd.DataFrame(columns).to_parquet(path)
    for combination, probability in (("prex", [0.25, 1, 1]), ("expr", [0.5, 1, 0])):
        one = replace(decode, cell=replace(decode.cell, hypotheses=combination))
        found = best_tokens(one, path)
        assert found.sentence.tolist() == [0, 0, 1]
        assert found.token_id.tolist() == [7, 2, 2]
        assert found.probability == pytest.approx(probability)


def test_tokens_that_match_the_reference(decode: Decode, tmp_path: Path) -> None:
    """The sentences of `decode` as references; the second has none, the last no hypothesis."""
    said = BestTokens(
        np.array([0, 0, 1, 2, 2, 2]),
        np.array([4, 2, 6, 6, 6, 2]),
        np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4]),
    )
    found = token_forecasts(said, decode)
    assert found.confidence.tolist() == [0.9, 0.8, 0.6, 0.5, 0.4]
    assert found.sentence.tolist() == [0, 0, 2, 2, 2]
    assert found.right[[0, 1, 4]].tolist() == [1, 1, 1]
    assert sorted(found.right[2:4].tolist()) == [0, 1]


def test_sentences_and_their_quality(decode: Decode) -> None:
    tokens = BestTokens(
        np.array([0, 0, 2, 2, 3]), np.zeros(5, int), np.array([0.5, 0.125, 0.0, 1.0, 0.75])
    )
    found = sentence_forecasts(tokens, np.array([20.0, 0.0, 150.0, np.nan]))
    assert found.confidence == pytest.approx([0.25, 0])
    assert found.right == pytest.approx([0.8, 0])
    assert found.sentence.tolist() == [0, 2]


def test_errors_of_scorable_sentences(decode: Decode) -> None:
    given = replace(decode, texts=["a b", None, "a", "x"], references=["a c", "b", None, "x"])
    errors = given.errors_percent(QUALITIES["wer_percent"].sentence_error_percent)
    np.testing.assert_array_equal(errors, [50, np.nan, np.nan, 0])

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.metrics.calibration import (
    BestTokens,
    best_tokens,
    checked_forecasts,
    expected_calibration_error,
    matching_tokens,
    reliability,
    sentence_forecasts,
    token_forecasts,
    weighted_calibration_error,
)
from pipeline.metrics.decodes import Decode
from pipeline.quality.registry import QUALITIES
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics

ITEMS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=40
)


def brute_force(items: list[tuple[float, float, int]]) -> float:
    """Return the calibration error by its definition, bin by bin."""
    total = 0.0
    for index in range(10):
        inside = [
            (confidence, right)
            for confidence, right, _ in items
            if min(int(confidence * 10), 9) == index
        ]
        if inside:
            confidence, right = np.mean(inside, axis=0)
            total += len(inside) / len(items) * abs(right - confidence)
    return 100 * total


@given(ITEMS)
def test_calibration_error_equals_its_definition(items: list[tuple[float, float, int]]) -> None:
    confidence, right, _ = zip(*items, strict=True)
    assert expected_calibration_error(confidence, right) == pytest.approx(brute_force(items))


@given(ITEMS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_weight_repeats_a_sentence(
    items: list[tuple[float, float, int]], weight: list[int]
) -> None:
    confidence, right, sentence = (np.array(values) for values in zip(*items, strict=True))
    metric = weighted_calibration_error(checked_forecasts(confidence, right, sentence), 4)
    repeated = [item for item in items for _ in range(weight[item[2]])]
    value = metric(np.array([weight], dtype=float))[0]
    if repeated:
        assert value == pytest.approx(brute_force(repeated), abs=1e-9)
    else:
        assert np.isnan(value)


def test_certainty_is_calibrated_only_if_it_is_always_right() -> None:
    assert expected_calibration_error([1.0, 1.0], [1, 1]) == 0
    assert expected_calibration_error([1.0, 1.0], [0, 0]) == 100
    assert np.isnan(expected_calibration_error([], []))


def test_bins_hold_every_item_once() -> None:
    confidence, right = np.array([0.0, 0.05, 0.55, 1.0]), np.array([0.0, 1.0, 1.0, 1.0])
    bins = reliability(checked_forecasts(confidence, right, np.arange(4)))
    assert [(item.low, item.n) for item in bins] == [(0.0, 2), (0.5, 1), (0.9, 1)]
    assert bins[0].confidence == pytest.approx(0.025)
    assert bins[0].right == pytest.approx(0.5)


@pytest.mark.parametrize("confidence", [[1.1], [-0.1], [np.nan], [0.5, 0.5]])
def test_invalid_probabilities_are_rejected(confidence: list[float]) -> None:
    with pytest.raises(DataError):
        expected_calibration_error(confidence, [1.0])


@given(st.lists(st.integers(0, 2), max_size=7), st.lists(st.integers(0, 2), max_size=7))
def test_matching_tokens_are_those_kept_by_a_shortest_edit(
    hypothesis: list[int], reference: list[int]
) -> None:
    @cache
    def edits(n_hypothesis: int, n_reference: int) -> int:
        if n_hypothesis == 0 or n_reference == 0:
            return n_hypothesis + n_reference
        differs = hypothesis[n_hypothesis - 1] != reference[n_reference - 1]
        return min(
            edits(n_hypothesis - 1, n_reference) + 1,
            edits(n_hypothesis, n_reference - 1) + 1,
            edits(n_hypothesis - 1, n_reference - 1) + differs,
        )

    (kept,) = matching_tokens([hypothesis], [reference])
    assert len(kept) == len(hypothesis)
    # Kept tokens are a common subsequence, so the reference has them in this order.
    rest = iter(reference)
    assert all(token in rest for token, is_kept in zip(hypothesis, kept, strict=True) if is_kept)
    distance = edits(len(hypothesis), len(reference))
    assert max(len(hypothesis), len(reference)) - sum(kept) <= distance


def test_tokens_that_match_the_reference_by_hand() -> None:
    hypotheses, references = [[7, 8, 9, 2], [], [1]], [[7, 5, 9, 2], [1], []]
    assert matching_tokens(hypotheses, references) == [[True, False, True, True], [], [False]]
    assert matching_tokens([], []) == []


def test_reliability_diagram_by_hand() -> None:
    forecasts = checked_forecasts([0.1, 0.19, 0.2, 0.99, 1.0], [1, 0, 1, 1, 0], np.zeros(5, int))
    assert forecasts.bin.tolist() == [1, 1, 2, 9, 9]
    result = [
        (item.low, item.high, item.n, item.confidence, item.right)
        for item in reliability(forecasts)
    ]
    assert result == [
        pytest.approx((0.1, 0.2, 2, 0.145, 0.5)),
        pytest.approx((0.2, 0.3, 1, 0.2, 1.0)),
        pytest.approx((0.9, 1.0, 2, 0.995, 0.5)),
    ]
    expected = 100 * (2 * 0.355 + 0.8 + 2 * 0.495) / 5
    assert expected_calibration_error([0.1, 0.19, 0.2, 0.99, 1.0], [1, 0, 1, 1, 0]) == (
        pytest.approx(expected)
    )


def test_probabilities_include_0_and_1() -> None:
    assert len(checked_forecasts([0.0, 1.0], [1.0, 0.0], np.arange(2)).confidence) == 2
    assert len(checked_forecasts([], [], np.arange(0)).confidence) == 0
    for right in ([0.5, 1.01], [-0.01, 0.5]):
        with pytest.raises(DataError, match=rf"right: must .* \(got {right[0]:.6g} to "):
            checked_forecasts([0.5, 0.5], right, np.arange(2))
    for sizes in ((2, 1, 2), (1, 2, 2), (2, 2, 1)):
        words = r"lengths differ \({}, {}, {}\)".format(*sizes)
        with pytest.raises(DataError, match=words):
            checked_forecasts(np.zeros(sizes[0]), np.zeros(sizes[1]), np.arange(sizes[2]))


def hypothesis(ids: list[int], logprob: list[float]) -> Hypothesis:
    plain = {name: np.ones(len(ids)) for name in TokenStatistics.__dataclass_fields__}
    of_member = {
        "logprob": np.array(logprob)[:, np.newaxis],
        "entropy_member": np.ones((len(ids), 1)),
    }
    return Hypothesis(np.array(ids), "text", 0.0, True, TokenStatistics(**(plain | of_member)))


@pytest.fixture
def decode(measured: Any, tmp_path: Path) -> Decode:
    """Return a decode of four sentences by a single member; the second has no hypothesis."""
    path = tmp_path / "store.h5"
    half = float(np.log(0.5))
    first = [hypothesis([4, 5, 2], [half, 5e-3, 2 * half]), hypothesis([9], [half])]
    with StoreWriter(
        path, members=["m"], vocab_size=10, regime="beam", combination="prex"
    ) as store:
        for sentence, hypotheses in enumerate(
            [first, [], [hypothesis([6, 2], [0.0, half])], [hypothesis([2], [half])]]
        ):
            store.add_sentence(sentence, "source", "text", hypotheses)
    decode: Decode = measured([0] * 4, ["t", None, "t", "t"], ["t"] * 4).decode
    return replace(decode, path=path, cell=replace(decode.cell, hypotheses="-"))


def test_best_tokens_are_those_of_first_hypotheses(decode: Decode, tmp_path: Path) -> None:
    """A stored log-prob slightly above 0 counts as probability 1."""
    result = best_tokens(decode, tmp_path / "none")
    assert result.sentence.tolist() == [0, 0, 0, 2, 2, 3]
    assert result.token_id.tolist() == [4, 5, 2, 6, 2, 2]
    assert result.probability == pytest.approx([0.5, 1, 0.25, 1, 0.5, 0.5])


def test_best_tokens_of_an_ensemble_come_from_its_measures(decode: Decode, tmp_path: Path) -> None:
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
        ensemble = replace(decode, cell=replace(decode.cell, hypotheses=combination))
        result = best_tokens(ensemble, path)
        assert result.sentence.tolist() == [0, 0, 1]
        assert result.token_id.tolist() == [7, 2, 2]
        assert result.probability == pytest.approx(probability)


def test_token_forecasts_compare_with_the_forced_reference(decode: Decode, tmp_path: Path) -> None:
    """The sentences of `decode` are references; the second one is missing."""
    best = BestTokens(
        np.array([0, 0, 1, 2, 2, 2]),
        np.array([4, 2, 6, 6, 6, 2]),
        np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4]),
    )
    result = token_forecasts(best, decode)
    assert result.confidence.tolist() == [0.9, 0.8, 0.6, 0.5, 0.4]
    assert result.sentence.tolist() == [0, 0, 2, 2, 2]
    assert result.right[[0, 1, 4]].tolist() == [1, 1, 1]
    assert sorted(result.right[2:4].tolist()) == [0, 1]


def test_sentence_forecasts_compare_with_quality(decode: Decode) -> None:
    tokens = BestTokens(
        np.array([0, 0, 2, 2, 3]), np.zeros(5, int), np.array([0.5, 0.125, 0.0, 1.0, 0.75])
    )
    result = sentence_forecasts(tokens, np.array([20.0, 0.0, 150.0, np.nan]))
    assert result.confidence == pytest.approx([0.25, 0])
    assert result.right == pytest.approx([0.8, 0])
    assert result.sentence.tolist() == [0, 2]


def test_errors_of_unscorable_sentences_are_nan(decode: Decode) -> None:
    given = replace(decode, texts=["a b", None, "a", "x"], references=["a c", "b", None, "x"])
    errors = given.errors_percent(QUALITIES["wer_percent"].sentence_error_percent)
    np.testing.assert_array_equal(errors, [50, np.nan, np.nan, 0])

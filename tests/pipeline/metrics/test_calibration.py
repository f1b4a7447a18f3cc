from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.metrics.calibration import (
    checked_forecasts,
    expected_calibration_error,
    matching_tokens,
    reliability,
    weighted_calibration_error,
)

ITEMS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 3)), min_size=1, max_size=40
)


def brute_force(items: list[tuple[float, float, int]]) -> float:
    """The definition, bin by bin."""
    total = 0.0
    for place in range(10):
        inside = [
            (confidence, right)
            for confidence, right, _ in items
            if min(int(confidence * 10), 9) == place
        ]
        if inside:
            confidence, right = np.mean(inside, axis=0)
            total += len(inside) / len(items) * abs(right - confidence)
    return 100 * total


@given(ITEMS)
def test_error_is_that_of_the_definition(items: list[tuple[float, float, int]]) -> None:
    confidence, right, _ = zip(*items, strict=True)
    assert expected_calibration_error(confidence, right) == pytest.approx(brute_force(items))


@given(ITEMS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_weight_repeats_a_sentence(
    items: list[tuple[float, float, int]], weight: list[int]
) -> None:
    confidence, right, sentence = (np.array(one) for one in zip(*items, strict=True))
    statistic = weighted_calibration_error(checked_forecasts(confidence, right, sentence), 4)
    repeated = [item for item in items for _ in range(weight[item[2]])]
    got = statistic(np.array([weight], dtype=float))[0]
    if repeated:
        assert got == pytest.approx(brute_force(repeated), abs=1e-9)
    else:
        assert np.isnan(got)


def test_always_right_and_certain_is_calibrated() -> None:
    assert expected_calibration_error([1.0, 1.0], [1, 1]) == 0
    assert expected_calibration_error([1.0, 1.0], [0, 0]) == 100
    assert np.isnan(expected_calibration_error([], []))


def test_bins_hold_every_item_once() -> None:
    confidence, right = np.array([0.0, 0.05, 0.55, 1.0]), np.array([0.0, 1.0, 1.0, 1.0])
    bins = reliability(checked_forecasts(confidence, right, np.arange(4)))
    assert [(one.low, one.n) for one in bins] == [(0.0, 2), (0.5, 1), (0.9, 1)]
    assert bins[0].confidence == pytest.approx(0.025)
    assert bins[0].right == pytest.approx(0.5)


@pytest.mark.parametrize("confidence", [[1.1], [-0.1], [np.nan], [0.5, 0.5]])
def test_what_is_no_probability_is_refused(confidence: list[float]) -> None:
    with pytest.raises(DataError):
        expected_calibration_error(confidence, [1.0])


@given(st.lists(st.integers(0, 2), max_size=7), st.lists(st.integers(0, 2), max_size=7))
def test_an_alignment_keeps_what_a_shortest_edit_keeps(
    hypothesis: list[int], reference: list[int]
) -> None:
    @cache
    def edits(said: int, meant: int) -> int:
        if said == 0 or meant == 0:
            return said + meant
        other = hypothesis[said - 1] != reference[meant - 1]
        return min(
            edits(said - 1, meant) + 1,
            edits(said, meant - 1) + 1,
            edits(said - 1, meant - 1) + other,
        )

    (kept,) = matching_tokens([hypothesis], [reference])
    assert len(kept) == len(hypothesis)
    # Kept tokens are a common subsequence: the reference has them in this order.
    rest = iter(reference)
    assert all(token in rest for token, one in zip(hypothesis, kept, strict=True) if one)
    distance = edits(len(hypothesis), len(reference))
    assert max(len(hypothesis), len(reference)) - sum(kept) <= distance


def test_tokens_that_match_the_reference() -> None:
    hypotheses, references = [[7, 8, 9, 2], [], [1]], [[7, 5, 9, 2], [1], []]
    assert matching_tokens(hypotheses, references) == [[True, False, True, True], [], [False]]
    assert matching_tokens([], []) == []


def test_a_diagram_by_hand() -> None:
    given = checked_forecasts([0.1, 0.19, 0.2, 0.99, 1.0], [1, 0, 1, 1, 0], np.zeros(5, int))
    assert given.bin.tolist() == [1, 1, 2, 9, 9]
    found = [(one.low, one.high, one.n, one.confidence, one.right) for one in reliability(given)]
    assert found == [
        pytest.approx((0.1, 0.2, 2, 0.145, 0.5)),
        pytest.approx((0.2, 0.3, 1, 0.2, 1.0)),
        pytest.approx((0.9, 1.0, 2, 0.995, 0.5)),
    ]
    expected = 100 * (2 * 0.355 + 0.8 + 2 * 0.495) / 5
    assert expected_calibration_error([0.1, 0.19, 0.2, 0.99, 1.0], [1, 0, 1, 1, 0]) == (
        pytest.approx(expected)
    )


def test_the_ends_of_probabilities_are_probabilities() -> None:
    assert len(checked_forecasts([0.0, 1.0], [1.0, 0.0], np.arange(2)).confidence) == 2
    assert len(checked_forecasts([], [], np.arange(0)).confidence) == 0
    for right in ([0.5, 1.01], [-0.01, 0.5]):
        with pytest.raises(DataError, match=rf"right: must .* \(got {right[0]:.6g} to "):
            checked_forecasts([0.5, 0.5], right, np.arange(2))
    for sizes in ((2, 1, 2), (1, 2, 2), (2, 2, 1)):
        words = r"lengths differ \({}, {}, {}\)".format(*sizes)
        with pytest.raises(DataError, match=words):
            checked_forecasts(np.zeros(sizes[0]), np.zeros(sizes[1]), np.arange(sizes[2]))

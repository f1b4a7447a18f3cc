from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import resample
from pipeline.metrics.detection import weighted_average_precision
from pipeline.metrics.ranking import precision_sum, rank_excess, scores, tie_groups
from pipeline.metrics.rules import weighted_trapezoid_area


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 99))
def test_rank_excess_equals_that_of_repeated_items(score, seed):
    random = np.random.default_rng(seed)
    marks = random.integers(0, 5, len(score)).astype(float)
    times = random.integers(0, 3, len(score))
    drawn = np.repeat(np.array(score), times)
    groups = tie_groups(np.array(score, dtype=float))
    result = rank_excess(
        times[np.newaxis].astype(float), groups.order, marks[groups.order], groups.is_last
    )
    # Mean ranks of tie groups minus 1/2, because an item covers the rank below its own.
    ranks = np.array([(drawn < value).sum() + (drawn == value).sum() / 2 for value in drawn])
    expected = np.repeat(marks, times) @ (ranks - len(drawn) / 2) if len(drawn) else 0
    assert result == pytest.approx([expected])


def test_equal_marks_have_exactly_no_rank_excess():
    weights = resample("abcdefg", 50, seed=1).weights.astype(float)
    groups = tie_groups(np.full(7, 0.1))
    result = rank_excess(weights, groups.order, np.full(7, 0.1), groups.is_last)
    np.testing.assert_array_equal(result, 0)


def test_precision_sum_by_hand():
    weights = np.array([[1.0, 1, 1], [0, 2, 1]])
    row, marks = np.array([0, 1, 2]), np.array([1.0, 0, 1])
    gained, total = precision_sum(weights, row, marks, np.array([True, True, True]))
    np.testing.assert_allclose(gained, [1 + 2 / 3, 1 / 3])
    np.testing.assert_allclose(total, [2, 1])


@pytest.mark.parametrize("metric", [weighted_average_precision, weighted_trapezoid_area])
def test_tokens_count_as_often_as_their_sentence(metric):
    random = np.random.default_rng(0)
    sentence = np.sort(random.integers(0, 6, 40))
    label, score = random.integers(0, 2, 40), random.integers(0, 9, 40)
    weights = resample("abcdef", 20, seed=0).weights.astype(float)
    np.testing.assert_allclose(
        metric(label, score, sentence)(weights), metric(label, score)(weights[:, sentence])
    )


def test_tie_groups_by_hand() -> None:
    groups = tie_groups(np.array([2.0, -np.inf, 2.0, 7.0, -np.inf, 3.0]))
    assert groups.order.tolist() == [1, 4, 0, 2, 5, 3]
    assert groups.starts.tolist() == [0, 2, 4, 5]
    assert groups.is_last.tolist() == [False, True, False, True, True, True]
    rows = np.array([[1.0, 2, 4, 8, 16, 32], [0, 0, 1, 0, 0, 1]])
    assert groups.sums(rows).tolist() == [[18, 5, 32, 8], [0, 1, 1, 0]]


def test_distinct_scores_are_groups_of_one() -> None:
    groups = tie_groups(np.array([3.0, 1.0, 2.0]))
    assert groups.is_last.tolist() == [True, True, True]
    assert groups.sums(np.array([[5.0, 6, 7]])).tolist() == [[6, 7, 5]]


def test_no_scores_have_no_groups() -> None:
    groups = tie_groups(np.empty(0))
    assert (groups.order.tolist(), groups.starts.tolist(), groups.is_last.tolist()) == ([], [], [])
    assert tie_groups(np.array([4.0])).is_last.tolist() == [True]


def test_scores_are_one_dimensional_and_not_nan() -> None:
    assert scores("u", [1, True]).dtype == np.float64
    with pytest.raises(DataError, match=r"u: must be one-dimensional \(got shape \(\)\)"):
        scores("u", 1.0)
    with pytest.raises(DataError, match="u: 2 of 3 values are NaN"):
        scores("u", [np.nan, 0, np.nan])

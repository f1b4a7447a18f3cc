"""What every metric is made of, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.ranking import scores, tie_groups
from pipeline.quality.weighted_metric import mean_of_metrics, point_estimate, ratio, weighted_mean

WEIGHTS = np.array([[1.0, 1, 1], [0, 3, 0], [2, 0, 1], [0, 0, 0]])


def test_a_weighted_mean() -> None:
    found = weighted_mean(np.array([1.0, 2, 6]))(WEIGHTS)
    assert found[:3].tolist() == [3, 2, 8 / 3]
    assert np.isnan(found[3])


def test_a_quotient_by_zero_is_undefined_and_makes_no_noise() -> None:
    found = ratio(np.array([1.0, 0, -3]), np.array([0.0, 0, -2]))
    assert np.isnan(found).tolist() == [True, True, False]
    assert found[2] == 1.5


def test_the_point_counts_each_sentence_once() -> None:
    assert point_estimate(lambda weights: weights.sum(axis=1) * 10 + weights[:, 0], 4) == 41
    assert np.isnan(point_estimate(weighted_mean(np.empty(0)), 0))


def test_the_mean_of_statistics() -> None:
    parts = [weighted_mean(np.array(one)) for one in ([1.0, 2, 3], [3.0, 6, 9], [2.0, 1, 0])]
    assert mean_of_metrics(parts)(WEIGHTS[:2]).tolist() == [3, 3]
    assert mean_of_metrics(parts[:1]) is parts[0]
    undefined = [parts[0], lambda weights: np.full(len(weights), np.nan)]
    assert np.isnan(mean_of_metrics(undefined)(WEIGHTS)).all()


def test_groups_of_equal_scores() -> None:
    groups = tie_groups(np.array([2.0, -np.inf, 2.0, 7.0, -np.inf, 3.0]))
    assert groups.order.tolist() == [1, 4, 0, 2, 5, 3]
    assert groups.starts.tolist() == [0, 2, 4, 5]
    assert groups.is_last.tolist() == [False, True, False, True, True, True]
    rows = np.array([[1.0, 2, 4, 8, 16, 32], [0, 0, 1, 0, 0, 1]])
    assert groups.sums(rows).tolist() == [[18, 5, 32, 8], [0, 1, 1, 0]]


def test_scores_that_all_differ_are_groups_of_one() -> None:
    groups = tie_groups(np.array([3.0, 1.0, 2.0]))
    assert groups.is_last.tolist() == [True, True, True]
    assert groups.sums(np.array([[5.0, 6, 7]])).tolist() == [[6, 7, 5]]


def test_no_score_has_no_group() -> None:
    groups = tie_groups(np.empty(0))
    assert (groups.order.tolist(), groups.starts.tolist(), groups.is_last.tolist()) == ([], [], [])
    assert tie_groups(np.array([4.0])).is_last.tolist() == [True]


def test_scores_are_one_number_a_sentence() -> None:
    assert scores("u", [1, True]).dtype == np.float64
    with pytest.raises(DataError, match=r"u: must be one-dimensional \(got shape \(\)\)"):
        scores("u", 1.0)
    with pytest.raises(DataError, match="u: 2 of 3 values are NaN"):
        scores("u", [np.nan, 0, np.nan])

"""Weighted metrics by hand."""

from __future__ import annotations

import numpy as np

from pipeline.quality.weighted_metric import mean_of_metrics, point_estimate, ratio, weighted_mean

WEIGHTS = np.array([[1.0, 1, 1], [0, 3, 0], [2, 0, 1], [0, 0, 0]])


def test_weighted_mean_by_hand() -> None:
    means = weighted_mean(np.array([1.0, 2, 6]))(WEIGHTS)
    assert means[:3].tolist() == [3, 2, 8 / 3]
    assert np.isnan(means[3])


def test_a_ratio_with_denominator_0_is_nan_without_a_warning() -> None:
    quotients = ratio(np.array([1.0, 0, -3]), np.array([0.0, 0, -2]))
    assert np.isnan(quotients).tolist() == [True, True, False]
    assert quotients[2] == 1.5


def test_the_point_estimate_counts_each_sentence_once() -> None:
    assert point_estimate(lambda weights: weights.sum(axis=1) * 10 + weights[:, 0], 4) == 41
    assert np.isnan(point_estimate(weighted_mean(np.empty(0)), 0))


def test_mean_of_metrics_by_hand() -> None:
    parts = [weighted_mean(np.array(values)) for values in ([1.0, 2, 3], [3.0, 6, 9], [2.0, 1, 0])]
    assert mean_of_metrics(parts)(WEIGHTS[:2]).tolist() == [3, 3]
    assert mean_of_metrics(parts[:1]) is parts[0]
    undefined = [parts[0], lambda weights: np.full(len(weights), np.nan)]
    assert np.isnan(mean_of_metrics(undefined)(WEIGHTS)).all()

"""Metrics as functions of sentence weights, so that an estimate and its interval share one code.

With a weight of 1 per sentence, a weighted metric is the point estimate. With the weights of a
bootstrap resample (how often each sentence was drawn), it is the value on that resample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError

FloatArray: TypeAlias = NDArray[np.float64]
# weights [resample, sentence] -> values [resample]; NaN where the metric is undefined
WeightedMetric: TypeAlias = Callable[[FloatArray], FloatArray]


def point_estimate(metric: WeightedMetric, n_sentence: int) -> float:
    """Value of a metric when every sentence counts once; NaN where undefined."""
    return float(metric(np.ones((1, n_sentence)))[0])


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Elementwise quotient, NaN where the denominator is 0."""
    quotient: FloatArray = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def weighted_mean(values: FloatArray) -> WeightedMetric:
    """Mean over sentences of `values` [sentence], in their unit."""
    return lambda weights: ratio(weights @ values, weights.sum(axis=1))


def mean_of_metrics(metrics: Sequence[WeightedMetric]) -> WeightedMetric:
    """Mean of several metrics of the same sentences; NaN where one is undefined."""
    if len(metrics) == 1:
        return metrics[0]

    def mean(weights: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([metric(weights) for metric in metrics], axis=0)
        return total / len(metrics)

    return mean


def check_paired(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise DataError if there are more hypotheses than references, or fewer."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"hypotheses: {len(hypotheses)} for {len(references)} references. "
            "Pass one reference per hypothesis."
        )

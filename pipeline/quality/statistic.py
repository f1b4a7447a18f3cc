"""The one idea of all metrics: a number that depends on how often each sentence counts.

With every weight 1 it is the point estimate; with the weights of a resample, a draw of the
bootstrap. Point and interval so come from one piece of code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
# weights [resample, sentence] -> [resample]; NaN where the metric is undefined
Statistic: TypeAlias = Callable[[FloatArray], FloatArray]


def point(statistic: Statistic, n_sentence: int) -> float:
    """The value of a statistic where every sentence counts once; NaN where undefined."""
    return float(statistic(np.ones((1, n_sentence)))[0])


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Elementwise quotient, NaN where the denominator is 0."""
    quotient: FloatArray = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def weighted_mean(value: FloatArray) -> Statistic:
    """The mean over sentences of `value` [sentence], in its own unit."""
    return lambda weights: ratio(weights @ value, weights.sum(axis=1))


def mean(statistics: Sequence[Statistic]) -> Statistic:
    """The mean of several statistics of the same sentences; NaN where one is undefined."""
    if len(statistics) == 1:
        return statistics[0]

    def of_all(weights: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([one(weights) for one in statistics], axis=0)
        return total / len(statistics)

    return of_all

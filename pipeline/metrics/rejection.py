"""Prediction rejection: how well uncertainty ranks sentences by their error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pipeline.errors import DataError
from pipeline.metrics.ranking import paired_scores, rank_excess, tie_groups
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, point_estimate, ratio


def prediction_rejection_ratio(error: ArrayLike, uncertainty: ArrayLike) -> float:
    """Gain of replacing the most uncertain sentences first, in percent of an oracle's gain.

    `error` [sentence] is finite, in any unit; `uncertainty` [sentence] may be infinite. A replaced
    sentence has error 0; the curve of the mean error over the number of replaced sentences, 0 to N,
    is integrated by trapezoids. Sentences of equal uncertainty are replaced in random order, in
    expectation. NaN without sentences and if all errors are equal. Raises DataError for NaN and
    for unequal lengths. Source: appendix `apn:rejection-metric`.
    """
    metric = weighted_rejection_ratio(error, uncertainty)
    return point_estimate(metric, np.size(np.asarray(error)))


def weighted_rejection_ratio(error: ArrayLike, uncertainty: ArrayLike) -> WeightedMetric:
    """Prediction rejection ratio in percent as a function of weights [resample, sentence]."""
    errors, uncertainties = paired_scores(error=error, uncertainty=uncertainty)
    if not np.isfinite(errors).all():
        raise DataError("error: holds an infinite value. Leave those sentences out.")
    by_uncertainty = _gain(errors, uncertainties)
    by_error = _gain(errors, errors)
    return lambda weights: 100 * ratio(by_uncertainty(weights), by_error(weights))


def _gain(errors: FloatArray, score: FloatArray) -> WeightedMetric:
    """Area between the random curve and the curve that replaces the highest `score` first.

    The unit is error times squared number of sentences. A sentence at rank r (1 is replaced first)
    counts in r - 1/2 trapezoids, and a randomly ranked one in N/2 of them on average. The area is
    therefore the sum of error * (N/2 - r + 1/2), where r is the mean rank of the tie group.
    """
    groups = tie_groups(score)
    row, marks, is_last = groups.order, errors[groups.order], groups.is_last

    def gain(weights: FloatArray) -> FloatArray:
        return np.asarray(rank_excess(weights, row, marks, is_last))

    return gain


@dataclass(frozen=True)
class RejectionCurve:
    """A piecewise linear curve, from no sentence replaced to all of them.

    `replaced` [corner] is the fraction of replaced sentences, 0 to 1; `error` [corner] is the mean
    error over all sentences that remains, in the unit of the errors.
    """

    replaced: FloatArray
    error: FloatArray

    def at(self, replaced: FloatArray) -> FloatArray:
        """Remaining error at given fractions of replaced sentences."""
        return np.asarray(np.interp(replaced, self.replaced, self.error))

    @property
    def area(self) -> float:
        """Area under the curve."""
        return float(np.trapezoid(self.error, self.replaced))


def rejection_curve(error: ArrayLike, uncertainty: ArrayLike) -> RejectionCurve:
    """Remaining error when the most uncertain sentences are replaced first.

    Both arguments are [sentence], `error` is finite. A replaced sentence has error 0; sentences of
    equal uncertainty are replaced in random order, in expectation. The area between this curve and
    a straight line, divided by the same area for the oracle (`uncertainty` = `error`), is the
    prediction rejection ratio. Raises DataError without sentences, for unequal lengths and for NaN.
    Source: appendix `apn:rejection-metric`.
    """
    errors, uncertainties = paired_scores(error=error, uncertainty=uncertainty)
    if not len(errors):
        raise DataError("error: no sentence. A curve needs at least one.")
    groups = tie_groups(-uncertainties)
    # Within a tie group the expected error falls linearly.
    size = np.diff(groups.starts, append=len(errors))
    removed = np.cumsum(groups.sums(errors[None, :])[0])
    replaced = np.concatenate([[0.0], np.cumsum(size) / len(errors)])
    left = np.concatenate([[errors.sum()], errors.sum() - removed]) / len(errors)
    left[-1] = 0.0
    return RejectionCurve(replaced, left)

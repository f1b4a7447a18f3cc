"""Prediction rejection: how well uncertainty finds the sentences with the largest error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pipeline.errors import DataError
from pipeline.metrics.ranking import scores, tie_groups
from pipeline.quality.statistic import FloatArray, Statistic, point, ratio


def prediction_rejection_ratio(error: ArrayLike, uncertainty: ArrayLike) -> float:
    """Percent of the oracle's gain that replacing the most uncertain sentences first brings.

    `error` [sentence] in any unit, finite; `uncertainty` [sentence], higher is more uncertain,
    +-inf allowed. A replaced sentence has error 0; the curve of the mean error over the number of
    replaced sentences 0..N is integrated by trapezoids. Sentences with equal uncertainty are
    replaced in random order, in expectation. NaN where undefined: no sentence, or all errors equal.
    Raises DataError for NaN or for unequal lengths. Source: appendix `apn:rejection-metric`.
    """
    statistic = rejection_statistic(error, uncertainty)
    return point(statistic, np.size(np.asarray(error)))


def rejection_statistic(error: ArrayLike, uncertainty: ArrayLike) -> Statistic:
    """The prediction rejection ratio in percent as a function of weights [resample, sentence]."""
    errors = scores("error", error)
    uncertainties = scores("uncertainty", uncertainty)
    if len(errors) != len(uncertainties):
        raise DataError(
            "error and uncertainty must have one value for the same sentences, "
            f"got {len(errors)} and {len(uncertainties)}"
        )
    if not np.isfinite(errors).all():
        raise DataError("error must be finite, got an infinite value")
    by_uncertainty = _gain(errors, uncertainties)
    by_error = _gain(errors, errors)
    return lambda weights: 100 * ratio(by_uncertainty(weights), by_error(weights))


def _gain(errors: FloatArray, score: FloatArray) -> Statistic:
    """Area between the random curve and the curve that replaces the highest `score` first.

    In units of error times squared number of sentences. A sentence at rank r (1 = replaced first)
    stands in r - 1/2 trapezoids, a randomly ranked one in N/2 of them on average: so the area is
    the sum of error * (N/2 - r + 1/2), with the mean rank of its tie group as r.
    """
    groups = tie_groups(score)
    row, marks, is_last = groups.order, errors[groups.order], groups.is_last

    def gain(weights: FloatArray) -> FloatArray:
        from pipeline.metrics.ranking import rank_excess

        return np.asarray(rank_excess(weights, row, marks, is_last))

    return gain


@dataclass(frozen=True)
class RejectionCurve:
    """Corners of a curve that is straight in between, from nothing replaced to everything.

    `replaced` [corner]: the fraction of sentences replaced, 0 to 1; `error` [corner]: the mean
    error over all sentences that is then left, in the unit of the errors.
    """

    replaced: FloatArray
    error: FloatArray

    def at(self, replaced: FloatArray) -> FloatArray:
        """The error left at any fractions replaced."""
        return np.asarray(np.interp(replaced, self.replaced, self.error))

    @property
    def area(self) -> float:
        """Area below the curve, by trapezoids."""
        return float(np.trapezoid(self.error, self.replaced))


def rejection_curve(error: ArrayLike, uncertainty: ArrayLike) -> RejectionCurve:
    """Replace the most uncertain sentences first, equal ones in random order, in expectation.

    Both [sentence], `error` finite; a replaced sentence has error 0. The area between this curve
    and a straight line, over that of the oracle (`uncertainty` = `error`), is the prediction
    rejection ratio. Raises DataError for no sentence, unequal lengths and NaN. Source: appendix
    `apn:rejection-metric`.
    """
    errors, uncertainties = scores("error", error), scores("uncertainty", uncertainty)
    if not len(errors) or len(errors) != len(uncertainties):
        raise DataError(
            "error and uncertainty must have one value for the same sentences, at least one, "
            f"got {len(errors)} and {len(uncertainties)}"
        )
    groups = tie_groups(-uncertainties)
    # Within a group of ties the expected error falls in a straight line.
    size = np.diff(groups.starts, append=len(errors))
    gone = np.cumsum(groups.sums(errors[None, :])[0])
    replaced = np.concatenate([[0.0], np.cumsum(size) / len(errors)])
    left = np.concatenate([[errors.sum()], errors.sum() - gone]) / len(errors)
    left[-1] = 0.0
    return RejectionCurve(replaced, left)

"""Prediction rejection: how well uncertainty finds the sentences with the largest error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pipeline.errors import DataError
from pipeline.metrics.statistic import FloatArray, Statistic, point, ratio
from pipeline.metrics.ties import scores, tie_groups


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
        from pipeline.metrics.order_sums import rank_excess

        return np.asarray(rank_excess(weights, row, marks, is_last))

    return gain

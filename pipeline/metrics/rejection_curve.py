"""The rejection curve: the mean error that is left once the most uncertain are replaced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pipeline.errors import DataError
from pipeline.metrics.statistic import FloatArray
from pipeline.metrics.ties import scores, tie_groups


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

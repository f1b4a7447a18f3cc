"""Sentences in the order of a score, those with equal scores taken together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.metrics.statistic import FloatArray


@dataclass(frozen=True)
class TieGroups:
    """The groups of equal scores, from the lowest score to the highest."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @property
    def is_last(self) -> NDArray[np.bool_]:
        """Of the sentences in order, which one is the last of its group."""
        last = np.ones(len(self.order), dtype=bool)
        last[:-1] = False
        last[self.starts[1:] - 1] = True
        return last

    def sums(self, per_sentence: FloatArray) -> FloatArray:
        """Sum of each group: [resample, sentence] -> [resample, group]."""
        ordered = per_sentence[:, self.order]
        if len(self.starts) == len(self.order):
            return ordered
        return np.add.reduceat(ordered, self.starts, axis=1)


def tie_groups(score: FloatArray) -> TieGroups:
    """Group equal scores [sentence]; -inf comes first and +inf last, each tied with itself."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(score)])
    return TieGroups(order, starts)


def scores(name: str, values: ArrayLike) -> FloatArray:
    """One-dimensional float64 scores without NaN; DataError names the argument otherwise."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(f"{name} must be one value a sentence, got shape {array.shape}")
    n_missing = int(np.isnan(array).sum())
    if n_missing:
        raise DataError(
            f"{name} must not hold NaN, got {n_missing} of {len(array)}: leave those sentences out"
        )
    return array

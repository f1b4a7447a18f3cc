"""Ranked scores: groups of ties, and sums in rank order for many resamples at once (compiled).

An item (a sentence or a token) counts as often as its sentence is drawn. `row` [item] is the index
of that sentence among the weights [resample, sentence]; `marks` [item] is what is summed; `is_last`
[item] says whether the item is the last one of its tie group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.compiled import machine_code
from pipeline.errors import DataError
from pipeline.quality.weighted_metric import FloatArray


@dataclass(frozen=True)
class TieGroups:
    """Groups of equal scores, from the lowest score to the highest.

    `order` [item] sorts the items; `starts` [group] are the first positions of the groups in it.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @property
    def is_last(self) -> NDArray[np.bool_]:
        """Whether each item, in order, is the last of its group, [item]."""
        last = np.ones(len(self.order), dtype=bool)
        last[:-1] = False
        last[self.starts[1:] - 1] = True
        return last

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum of each group: [resample, item] -> [resample, group]."""
        ordered = values[:, self.order]
        if len(self.starts) == len(self.order):
            return ordered
        return np.add.reduceat(ordered, self.starts, axis=1)


def tie_groups(score: FloatArray) -> TieGroups:
    """Group equal scores [item]; -inf comes first and +inf last, each tied with itself."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(score)])
    return TieGroups(order, starts)


def paired_scores(**values: ArrayLike) -> list[FloatArray]:
    """Check and convert values of the same sentences, by name.

    Raises DataError, with the arguments' names, for another shape, for NaN and for unequal lengths.
    """
    arrays = [scores(name, array) for name, array in values.items()]
    if len({len(array) for array in arrays}) > 1:
        lengths = " and ".join(str(len(array)) for array in arrays)
        raise DataError(
            f"{' and '.join(values)}: lengths differ ({lengths}). "
            "Pass one value per sentence in each."
        )
    return arrays


def scores(name: str, values: ArrayLike) -> FloatArray:
    """Check and convert to one-dimensional float64.

    Raises DataError, with the argument's name, for another shape and for NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(
            f"{name}: must be one-dimensional (got shape {array.shape}). Pass one value per item."
        )
    n_missing = int(np.isnan(array).sum())
    if n_missing:
        raise DataError(
            f"{name}: {n_missing} of {len(array)} values are NaN. Leave those items out."
        )
    return array


Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]


def _rank_excess(weights: FloatArray, row: Rows, marks: FloatArray, is_last: Flags) -> FloatArray:
    """Sum of marks, each times the mean rank of its tie group minus the mean of all ranks.

    Ranks grow along the items. Returns [resample].
    """
    excess = np.zeros(len(weights))
    for resample in range(len(weights)):
        ranked = total = up_to = group = marked = 0.0
        for item in range(len(row)):
            weight = weights[resample, row[item]]
            group += weight
            marked += weight * marks[item]
            if is_last[item]:
                up_to += group
                ranked += marked * (up_to - group / 2)
                total += marked
                group = marked = 0.0
        excess[resample] = ranked - total * up_to / 2
    return excess


def _precision_sum(
    weights: FloatArray, row: Rows, marks: FloatArray, is_last: Flags
) -> tuple[FloatArray, FloatArray]:
    """Sum of marks, each times the precision at its score, and the sum of marks; both [resample].

    The precision is the share of marks among the items up to and including the tie group.
    """
    gained = np.zeros(len(weights))
    total = np.zeros(len(weights))
    for resample in range(len(weights)):
        so_far = up_to = marked = gain = 0.0
        for item in range(len(row)):
            weight = weights[resample, row[item]]
            up_to += weight
            marked += weight * marks[item]
            if is_last[item] and marked > 0:
                so_far += marked
                gain += marked * so_far / up_to
                marked = 0.0
        gained[resample] = gain
        total[resample] = so_far
    return gained, total


rank_excess = machine_code(_rank_excess, nogil=True)
precision_sum = machine_code(_precision_sum, nogil=True)

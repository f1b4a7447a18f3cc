"""Correlation of two values per sentence, as functions of sentence weights (compiled loops).

A sentence with weight w counts as w copies, as in a bootstrap resample. Values are NaN where one of
the two is the same for every sentence that was drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.compiled import machine_code
from pipeline.errors import DataError
from pipeline.metrics.ranking import TieGroups, paired_scores, tie_groups
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, ratio


def weighted_pearson(first: ArrayLike, second: ArrayLike) -> WeightedMetric:
    """Pearson's correlation of two finite values [sentence], in [-1, 1].

    Raises DataError for infinite values, NaN and unequal lengths. Source: Pearson, "Note on
    regression and inheritance in the case of two parents", 1895.
    """
    x, y = paired_scores(first=first, second=second)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("first and second: hold infinite values. Leave those sentences out.")
    x, y = _scaled(x)[np.newaxis], _scaled(y)[np.newaxis]
    return lambda weights: _correlation(weights, x, y)


def weighted_spearman(first: ArrayLike, second: ArrayLike) -> WeightedMetric:
    """Spearman's correlation of two values [sentence]: Pearson's of their ranks.

    Equal values share their mean rank; values may be infinite. Raises DataError for NaN and unequal
    lengths. Source: Spearman, "The proof and measurement of association between two things", 1904.
    """
    groups = [tie_groups(values) for values in paired_scores(first=first, second=second)]

    def correlation(weights: FloatArray) -> FloatArray:
        ranks = (mean_ranks(weights, g.order, g.is_last) for g in groups)
        return np.asarray(np.clip(rank_correlation(weights, *ranks), -1, 1))

    return correlation


def weighted_kendall(first: ArrayLike, second: ArrayLike) -> WeightedMetric:
    """Kendall's tau-b of two values [sentence], which may be infinite.

    Concordant minus discordant pairs, divided by the geometric mean of the numbers of pairs without
    a tie in `first` and in `second`. Raises DataError for NaN and unequal lengths. Source: Kendall,
    "The treatment of ties in ranking problems", 1945.
    """
    x, y = paired_scores(first=first, second=second)
    of_first, of_second = tie_groups(x), tie_groups(y)
    level = np.searchsorted(y[of_second.order][of_second.starts], y) + 1
    n_level = len(of_second.starts)

    def correlation(weights: FloatArray) -> FloatArray:
        balance = pair_balance(weights, of_first.order, of_first.is_last, level, n_level)
        untied = _untied_pairs(weights, of_first) * _untied_pairs(weights, of_second)
        return np.asarray(np.clip(ratio(balance, np.sqrt(untied)), -1, 1))

    return correlation


def _scaled(values: FloatArray) -> FloatArray:
    """Values from -1 to 1, so that no square overflows; the correlation does not change."""
    scale = np.abs(values).max(initial=0)
    return values / scale if scale > 0 else values


def _correlation(weights: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's correlation with weights, x and y [resample or 1, sentence] -> [resample]."""
    n = weights.sum(axis=1)
    dx, dy = (values - ratio((weights * values).sum(axis=1), n)[:, np.newaxis] for values in (x, y))
    product, square_x, square_y = (
        np.einsum("rs,rs->r", weights, values) for values in (dx * dy, dx * dx, dy * dy)
    )
    value = ratio(product, np.sqrt(square_x * square_y))
    # Rounding makes the variance of equal values differ from 0, so they are recognised as equal.
    value[_is_constant(weights, x) | _is_constant(weights, y)] = np.nan
    return np.asarray(np.clip(value, -1, 1))


def _is_constant(weights: FloatArray, values: FloatArray) -> NDArray[np.bool_]:
    """Whether all sentences that were drawn have the same value, [resample]."""
    drawn = weights > 0
    highest = np.where(drawn, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray(np.where(drawn, values, np.inf).min(axis=1, initial=np.inf) == highest)


def _untied_pairs(weights: FloatArray, groups: TieGroups) -> FloatArray:
    """Number of pairs of sentences with different values, [resample]."""
    n = weights.sum(axis=1)
    return np.asarray((n * n - np.square(groups.sums(weights)).sum(axis=1)) / 2)


def _mean_ranks(
    weights: FloatArray, order: NDArray[np.intp], is_last: NDArray[np.bool_]
) -> FloatArray:
    """Rank of each sentence in each resample, from 1: [resample, sentence].

    Copies of a sentence are tied with each other. The rank of a sentence that was not drawn has no
    meaning.
    """
    ranks = np.empty_like(weights)
    for resample in range(len(weights)):
        below = group = 0.0
        first = 0
        for position in range(len(order)):
            group += weights[resample, order[position]]
            if is_last[position]:
                for tied in range(first, position + 1):
                    ranks[resample, order[tied]] = below + (group + 1) / 2
                below += group
                group = 0.0
                first = position + 1
    return ranks


def _rank_correlation(
    weights: FloatArray, first_ranks: FloatArray, second_ranks: FloatArray
) -> FloatArray:
    """Pearson's correlation of mean ranks [resample, sentence], [resample].

    The mean of all ranks is known. Ranks are whole or half, so that equal values give exactly 0.
    """
    correlation = np.full(len(weights), np.nan)
    for resample in range(len(weights)):
        total = 0.0
        for sentence in range(weights.shape[1]):
            total += weights[resample, sentence]
        mean = (total + 1) / 2
        product = first_square = second_square = 0.0
        for sentence in range(weights.shape[1]):
            weight = weights[resample, sentence]
            first = first_ranks[resample, sentence] - mean
            second = second_ranks[resample, sentence] - mean
            product += weight * first * second
            first_square += weight * first * first
            second_square += weight * second * second
        if first_square > 0 and second_square > 0:
            correlation[resample] = product / np.sqrt(first_square * second_square)
    return correlation


def _pair_balance(
    weights: FloatArray,
    order: NDArray[np.intp],
    is_last: NDArray[np.bool_],
    level: NDArray[np.intp],
    n_level: int,
) -> FloatArray:
    """Number of concordant minus discordant pairs, [resample], in n log n steps.

    `order` sorts the sentences by the first value, and `is_last` says whether a sentence, in this
    order, is the last one of its ties. `level` [sentence] is the rank of its second value among the
    different ones, from 1 to `n_level`. The weights of the sentences so far are kept by level, in a
    binary indexed tree (Fenwick, "A new data structure for cumulative frequency tables", 1994).
    """
    balance = np.zeros(len(weights))
    tree = np.zeros(n_level + 1)
    at_level = np.zeros(n_level + 1)
    for resample in range(len(weights)):
        tree[:] = 0.0
        at_level[:] = 0.0
        total = result = 0.0
        first = 0
        for position in range(len(order)):
            if not is_last[position]:
                continue
            for tied in range(first, position + 1):
                weight = weights[resample, order[tied]]
                if weight > 0:
                    node = level[order[tied]] - 1
                    below = 0.0
                    while node > 0:
                        below += tree[node]
                        node &= node - 1
                    above = total - below - at_level[level[order[tied]]]
                    result += weight * (below - above)
            for tied in range(first, position + 1):
                weight = weights[resample, order[tied]]
                if weight > 0:
                    node = level[order[tied]]
                    at_level[node] += weight
                    total += weight
                    while node <= n_level:
                        tree[node] += weight
                        node += node & -node
            first = position + 1
        balance[resample] = result
    return balance


mean_ranks = machine_code(_mean_ranks, nogil=True)
rank_correlation = machine_code(_rank_correlation, nogil=True)
pair_balance = machine_code(_pair_balance, nogil=True)

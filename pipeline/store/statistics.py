"""The statistics of a token: their names, their order, and how they become columns of one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TokenStatistics:
    """The statistics of the tokens of one hypothesis, from which all measures are computed; nats.

    logprob [token, member]: ln P_m of the realised token. entropy_member [token, member]: H[P_m].
    All other statistics are [token]. entropy_prex, entropy_expr: entropy of the posterior.
    cross_prex, cross_expr: mean over members of -sum_k P_post(k) ln P_m(k). cross_member_expr: mean
    over members of -sum_k P_m(k) ln P_EP(k).

    This class is the only place that names the statistics; the order of its fields is the order of
    their columns.
    """

    logprob: Array
    entropy_member: Array
    entropy_prex: Array
    entropy_expr: Array
    cross_prex: Array
    cross_expr: Array
    cross_member_expr: Array


STATISTICS = tuple(field.name for field in fields(TokenStatistics))
# All except `logprob`, which needs the realised token, are statistics of whole distributions.
DISTRIBUTION_STATISTICS = STATISTICS[1:]
_PER_MEMBER = ("logprob", "entropy_member")
# Statistics of the distributions that have one number per token.
POSTERIOR_STATISTICS = tuple(name for name in STATISTICS if name not in _PER_MEMBER)


def n_columns(n_member: int, names: Sequence[str] = STATISTICS) -> int:
    """Number of columns of these statistics: one per member, or a single one."""
    return sum(n_member if name in _PER_MEMBER else 1 for name in names)


def columns(statistics: Mapping[str, Array], names: Sequence[str] = STATISTICS) -> Array:
    """Statistics side by side as float32 [token, column], from [token, member] and [token]."""
    side_by_side: Array = np.column_stack([statistics[name] for name in names])
    return side_by_side.astype(np.float32)


def column_views(
    table: Array, n_member: int, names: Sequence[str] = STATISTICS
) -> dict[str, Array]:
    """Views of the columns of each statistic, by name: [..., member] or [...].

    table [..., column]: the statistics `names` of an ensemble of `n_member`, in that order.
    """
    views: dict[str, Array] = {}
    start = 0
    for name in names:
        stop = start + n_columns(n_member, [name])
        views[name] = table[..., start:stop] if name in _PER_MEMBER else table[..., start]
        start = stop
    return views

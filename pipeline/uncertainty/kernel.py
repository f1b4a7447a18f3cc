"""Full token distributions in, the statistics that every measure needs out: one pass, in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Float64 = NDArray[np.float64]

# So many values are converted to another type at a time.
_BLOCK_VALUES = 2**20

STATISTICS = (
    "entropy_member",
    "entropy_prex",
    "entropy_expr",
    "cross_prex",
    "cross_expr",
    "cross_member_expr",
)


def fused_statistics(logprob: Array, prefix_logprob: Array) -> dict[str, Float64]:
    """Entropies and cross entropies of members and posteriors, a row a position.

    logprob [row, member, vocab]: ln P_m in nats, -inf allowed; prefix_logprob [row, member]:
    ln P(y_<l | x, theta_m), which weighs the members in ExPr. Returns entropy_member [row, member]
    and, each [row], entropy_prex, entropy_expr, cross_prex, cross_expr, cross_member_expr, in nats.
    float64 is computed in float64 throughout, float16 and float32 with float32 exponentials and
    float64 totals, by code that is compiled at first use. 0 ln 0 is 0; a cross entropy is +inf
    where a member gives 0 to a token that the posterior does not. Source: eqn:token-entropy-autoreg
    to eqn:token-mkl-autoreg.
    """
    n_row, n_member, n_vocab = logprob.shape
    log_weight = expr_log_weight(prefix_logprob)
    reduce = _exact_statistics if logprob.dtype == np.float64 else _float32_statistics
    statistics = {name: np.empty(n_row) for name in STATISTICS}
    statistics["entropy_member"] = np.empty((n_row, n_member))
    step = max(1, _BLOCK_VALUES // (n_member * n_vocab))
    for start in range(0, n_row, step):
        rows = slice(start, start + step)
        for name, values in reduce(logprob[rows], log_weight[rows]).items():
            statistics[name][rows] = values
    if n_member == 1:
        for name in STATISTICS[1:]:
            statistics[name] = statistics["entropy_member"][:, 0].copy()
    return statistics


def expr_log_weight(prefix_logprob: Array) -> Float64:
    """ln w_m, w_m proportional to P(y_<l | x, theta_m): [row, member] to [row, member].

    Where every member gives the prefix 0 the weights are uniform, as nothing tells them apart.
    Source: eqn:token-posterior-sequence-level-bma.
    """
    prefix = np.asarray(prefix_logprob, dtype=np.float64)
    prefix = np.where(np.isneginf(_highest(prefix))[:, np.newaxis], 0.0, prefix)
    prefix = prefix - _highest(prefix)[:, np.newaxis]
    log_weight: Float64 = prefix - np.log(_member_sum(np.exp(prefix)))[:, np.newaxis]
    return log_weight


def log_mean(logprob: Array, log_weight: Array | float) -> Float64:
    """ln sum_m w_m P_m over the member axis 1, in float64; -inf where every P_m is 0."""
    terms: Float64 = np.asarray(logprob + log_weight, dtype=np.float64)
    shift = _highest(terms)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    with np.errstate(divide="ignore"):
        result: Float64 = np.log(_member_sum(np.exp(terms - shift[:, np.newaxis]))) + shift
    return result


def member_mean(values: Array) -> Float64:
    """Mean over the member axis 1, in float64."""
    mean: Float64 = _member_sum(values.astype(np.float64)) / values.shape[1]
    return mean


# Numpy reduces a short last axis slowly: member by member is several times faster.


def _member_sum(values: Float64) -> Float64:
    total = values[:, 0].copy()
    for member in range(1, values.shape[1]):
        total += values[:, member]
    return total


def _highest(values: Float64) -> Float64:
    highest = values[:, 0].copy()
    for member in range(1, values.shape[1]):
        np.maximum(highest, values[:, member], out=highest)
    return highest


def _float32_statistics(logprob: Array, log_weight: Float64) -> dict[str, Float64]:
    """Statistics [row] with one float32 exp an element; exactly, in rows that are out of range."""
    from pipeline.uncertainty.fused import float32_sums

    member_sums, sums = np.zeros(logprob.shape[:2]), np.zeros((len(logprob), 5))
    weight = np.exp(log_weight).astype(np.float32)
    inexact = float32_sums(np.ascontiguousarray(logprob, np.float32), weight, member_sums, sums)
    values = [0.0 - member_sums, *(0.0 - sums.T)]
    statistics = dict(zip(STATISTICS, values, strict=True))
    for row in np.flatnonzero(inexact):
        exact = _exact_statistics(logprob[row : row + 1], log_weight[row : row + 1])
        for name in STATISTICS:
            statistics[name][row] = exact[name][0]
    return statistics


def _exact_statistics(logprob: Array, log_weight: Float64) -> dict[str, Float64]:
    """Statistics [row] in float64 log space, with every case of -inf and underflow."""
    log_member: Float64 = logprob.astype(np.float64, copy=False)
    log_prex = log_mean(log_member, -np.log(log_member.shape[1]))
    log_expr = log_mean(log_member, log_weight[:, :, np.newaxis])
    return {
        "entropy_member": _cross(log_member, log_member),
        "entropy_prex": _cross(log_prex, log_prex),
        "entropy_expr": _cross(log_expr, log_expr),
        "cross_prex": _cross(log_prex[:, np.newaxis], log_member).mean(axis=1),
        "cross_expr": _cross(log_expr[:, np.newaxis], log_member).mean(axis=1),
        "cross_member_expr": _cross(log_prex, log_expr),
    }


def _cross(log_p: Float64, log_q: Float64) -> Float64:
    """-sum_k p ln q over the last axis: 0 where p is 0, +inf where q alone is 0."""
    possible = ~np.isneginf(log_p)
    with np.errstate(invalid="ignore"):
        terms = np.where(possible, np.exp(log_p) * -log_q, 0.0)
    terms = np.where(possible & np.isneginf(log_q), np.inf, terms)
    total: Float64 = terms.sum(axis=-1)
    return total

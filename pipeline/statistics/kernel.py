"""The statistics of a store from full token distributions, in one pass over them."""

from __future__ import annotations

import numpy as np

from pipeline.compiled import float32_sums
from pipeline.statistics.posterior import Array, Float64, expr_log_weight, log_mean
from pipeline.store.normalisation import total_probability
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, POSTERIOR_STATISTICS

# Values that are converted to another type at a time.
_BLOCK_VALUES = 2**20


def fused_statistics(
    logprob: Array, prefix_logprob: Array, mass: Float64 | None = None
) -> dict[str, Float64]:
    """Compute entropies and cross entropies of members and posteriors, one row per position.

    logprob [row, member, vocab]: ln P_m in nats, -inf allowed; prefix_logprob [row, member]:
    ln P(y_<l | x, theta_m), which determines the weights of the members in ExPr. mass [row,
    member] is filled with sum_k P_m(k), which is undefined where a log-prob is above 80. Returns
    entropy_member [row, member] and, each [row], entropy_prex, entropy_expr, cross_prex,
    cross_expr, cross_member_expr, in nats. float64 input is computed in float64; float16 and
    float32 input with float32 exponentials and float64 sums, by compiled code. 0 ln 0 is 0. A cross
    entropy is +inf where a member excludes a token that the posterior does not. Source:
    eqn:token-entropy-autoreg to eqn:token-mkl-autoreg.
    """
    n_row, n_member, n_vocab = logprob.shape
    log_weight = expr_log_weight(prefix_logprob)
    reduce = _exact_statistics if logprob.dtype == np.float64 else _float32_statistics
    statistics = {name: np.empty(n_row) for name in DISTRIBUTION_STATISTICS}
    statistics["entropy_member"] = np.empty((n_row, n_member))
    mass = np.empty((n_row, n_member)) if mass is None else mass
    step = max(1, _BLOCK_VALUES // (n_member * n_vocab))
    for start in range(0, n_row, step):
        rows = slice(start, start + step)
        for name, values in reduce(logprob[rows], log_weight[rows], mass[rows]).items():
            statistics[name][rows] = values
    if n_member == 1:
        for name in POSTERIOR_STATISTICS:
            statistics[name] = statistics["entropy_member"][:, 0].copy()
    return statistics


def _float32_statistics(logprob: Array, log_weight: Float64, mass: Float64) -> dict[str, Float64]:
    """Compute statistics with one float32 exp per element, and rows out of its range exactly."""
    member_sums = np.zeros(logprob.shape[:2])
    sums = np.zeros((len(logprob), len(POSTERIOR_STATISTICS)))
    mass[...] = 0
    weight = np.exp(log_weight).astype(np.float32)
    values32 = np.ascontiguousarray(logprob, np.float32)
    inexact = float32_sums(values32, weight, member_sums, sums, mass)
    values = [0.0 - member_sums, *(0.0 - sums.T)]
    statistics = dict(zip(DISTRIBUTION_STATISTICS, values, strict=True))
    for row in np.flatnonzero(inexact):
        place = slice(row, row + 1)
        exact = _exact_statistics(logprob[place], log_weight[place], mass[place])
        for name in DISTRIBUTION_STATISTICS:
            statistics[name][row] = exact[name][0]
    return statistics


def _exact_statistics(logprob: Array, log_weight: Float64, mass: Float64) -> dict[str, Float64]:
    """Compute statistics in float64 log space, for all cases of -inf and underflow."""
    log_member: Float64 = logprob.astype(np.float64, copy=False)
    mass[...] = total_probability(log_member)
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
    """Return -sum_k p ln q over the last axis: 0 where p is 0, +inf where only q is 0."""
    possible = ~np.isneginf(log_p)
    with np.errstate(invalid="ignore"):
        terms = np.where(possible, np.exp(log_p) * -log_q, 0.0)
    terms = np.where(possible & np.isneginf(log_q), np.inf, terms)
    total: Float64 = terms.sum(axis=-1)
    return total

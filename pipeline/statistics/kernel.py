"""Full token distributions in, the statistics that every measure needs out: one pass, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.compiled import machine_code
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, POSTERIOR_STATISTICS

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

# Three arrays of this many float32 values stay in a core's first-level cache.
_BLOCK = 1024
# No exponential, nor its product with the largest weight, leaves the normal range above this.
_FLOOR_NATS = np.float32(-80.0)
# Stands for -inf, so that 0 ln 0 is a very small number and never NaN.
_IMPOSSIBLE_NATS = np.float32(-1e6)
_ONE = np.float32(1.0)
_HALF = np.float32(0.5)
_LN2 = np.float32(np.log(2.0))
_LOG2_E = np.float32(1.0 / np.log(2.0))
_TAYLOR = tuple(np.float32(1.0 / factorial) for factorial in (720, 120, 24, 6, 2))
_ODD = tuple(np.float32(2.0 / odd) for odd in (9, 7, 5, 3, 1))
_SQRT_HALF_BITS = np.int32(0x3F3504F3)
_MANTISSA_BITS = np.int32(23)
_EXPONENT_BIAS = np.int32(127)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Machine code of loops that become vector code, the same whether just made or read back.

    What it calls becomes a part of it: of two copies that were rounded differently, a process that
    compiles would take one, and a process that reads machine code back the other.
    """
    # Sums in another order, and no test for division by zero.
    return machine_code(
        function,
        inline="always",
        nogil=True,
        fastmath={"reassoc", "contract", "nsz"},
        error_model="numpy",
    )


# numpy's exp and log would be called element by element here; these two become vector code.


@compiled
def exp32(x: np.float32) -> np.float32:
    """exp of a float32 in [-87, 87]: 2^n times a polynomial of the rest, |rest| <= ln(2)/2."""
    n = np.floor(x * _LOG2_E + _HALF)
    r = x - n * _LN2
    p = _TAYLOR[0]
    p = p * r + _TAYLOR[1]
    p = p * r + _TAYLOR[2]
    p = p * r + _TAYLOR[3]
    p = p * r + _TAYLOR[4]
    p = p * r + _ONE
    p = p * r + _ONE
    power = np.int32((np.int32(n) + _EXPONENT_BIAS) << _MANTISSA_BITS)
    return np.float32(p * power.view(np.float32))


@compiled
def log32(x: np.float32) -> np.float32:
    """ln of a normal float32: n ln 2 + 2 artanh(s), with x = 2^n m, s = (m - 1) / (m + 1)."""
    bits = np.float32(x).view(np.int32)
    n = np.int32((bits - _SQRT_HALF_BITS) >> _MANTISSA_BITS)
    m = np.int32(bits - np.int32(n << _MANTISSA_BITS)).view(np.float32)
    s = (m - _ONE) / (m + _ONE)
    square = s * s
    p = _ODD[0]
    p = p * square + _ODD[1]
    p = p * square + _ODD[2]
    p = p * square + _ODD[3]
    p = p * square + _ODD[4]
    return np.float32(n) * _LN2 + p * s


@compiled
def _some_impossible(logprob: Float32) -> bool:
    """Whether members differ on a token, [member, vocab], that one of them all but excludes."""
    for k in range(logprob.shape[1]):
        low = excluded = 0
        for member in range(logprob.shape[0]):
            low += logprob[member, k] < _FLOOR_NATS
            excluded += logprob[member, k] < _IMPOSSIBLE_NATS
        if low and excluded < logprob.shape[0]:
            return True
    return False


@compiled
def float32_sums(
    logprob: Float32, weight: Float32, member_sums: Float64, sums: Float64
) -> NDArray[np.bool_]:
    """Sums over vocab of every row, added to member_sums and sums; which rows need another way.

    logprob [row, member, vocab] and weight [row, member], of ExPr. member_sums [row, member]:
    sum_k P_m ln P_m; sums [row, 5]: the same of PrEx; of ExPr; sum_k P_PE mean_m ln P_m; of P_EP;
    sum_k P_PE ln P_EP. Returns [row]: true where one member all but excludes a token (below
    exp(-80)) and not all members give it 0; the sums of such a row are of no use.
    """
    n_row, n_member, n_vocab = logprob.shape
    inexact = np.zeros(n_row, np.bool_)
    prex = np.empty(_BLOCK, np.float32)
    expr = np.empty(_BLOCK, np.float32)
    total = np.empty(_BLOCK, np.float32)
    share = _ONE / np.float32(n_member)
    for row in range(n_row):
        for start in range(0, n_vocab, _BLOCK):
            size = min(_BLOCK, n_vocab - start)
            prex[:size] = 0
            expr[:size] = 0
            total[:size] = 0
            low = np.int32(0)
            for member in range(n_member):
                values = logprob[row, member, start : start + size]
                w = weight[row, member]
                own = np.float32(0)
                for k in range(size):
                    x = max(values[k], _IMPOSSIBLE_NATS)
                    low |= np.int32(x < _FLOOR_NATS)
                    total[k] += x
                    p = exp32(max(x, _FLOOR_NATS))
                    own += p * x
                    prex[k] += p
                    expr[k] += w * p
                member_sums[row, member] += own
            if low and _some_impossible(logprob[row, :, start : start + size]):
                inexact[row] = True
            s0 = s1 = s2 = s3 = s4 = np.float32(0)
            for k in range(size):
                p = prex[k] * share
                q = expr[k]
                log_p = log32(p)
                log_q = log32(q)
                mean = total[k] * share
                s0 += p * log_p
                s1 += q * log_q
                s2 += p * mean
                s3 += q * mean
                s4 += p * log_q
            sums[row, 0] += s0
            sums[row, 1] += s1
            sums[row, 2] += s2
            sums[row, 3] += s3
            sums[row, 4] += s4
    return inexact


Array = NDArray[np.floating[Any]]

# So many values are converted to another type at a time.
_BLOCK_VALUES = 2**20


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
    statistics = {name: np.empty(n_row) for name in DISTRIBUTION_STATISTICS}
    statistics["entropy_member"] = np.empty((n_row, n_member))
    step = max(1, _BLOCK_VALUES // (n_member * n_vocab))
    for start in range(0, n_row, step):
        rows = slice(start, start + step)
        for name, values in reduce(logprob[rows], log_weight[rows]).items():
            statistics[name][rows] = values
    if n_member == 1:
        for name in POSTERIOR_STATISTICS:
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
    from pipeline.statistics.kernel import float32_sums

    member_sums = np.zeros(logprob.shape[:2])
    sums = np.zeros((len(logprob), len(POSTERIOR_STATISTICS)))
    weight = np.exp(log_weight).astype(np.float32)
    inexact = float32_sums(np.ascontiguousarray(logprob, np.float32), weight, member_sums, sums)
    values = [0.0 - member_sums, *(0.0 - sums.T)]
    statistics = dict(zip(DISTRIBUTION_STATISTICS, values, strict=True))
    for row in np.flatnonzero(inexact):
        exact = _exact_statistics(logprob[row : row + 1], log_weight[row : row + 1])
        for name in DISTRIBUTION_STATISTICS:
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

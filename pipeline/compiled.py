"""Loops compiled by numba: statistics of distributions, and the next token of a search or sample.

numba keeps machine code on disk until the file of a function changes. It does not look at other
files. Therefore all functions that call each other are in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def machine_code(function: Callable[..., Any], **options: object) -> Callable[..., Any]:
    """Compile a function at its first call, and keep the machine code on disk if possible.

    The code is kept in `__pycache__` or, if that is read-only, in the user's cache folder. The
    function must not call compiled functions of other files.
    """
    compiled: Callable[..., Any]
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # neither folder can be written
        compiled = njit(**options)(function)
    return compiled


def _vectorised(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile loops so that they become vector code.

    Functions are inlined. Otherwise the first process would use copies that it optimised together,
    a later process the separate copies from the disk, and they could round differently.
    """
    # Sums may be reordered, and division by zero is not checked.
    return machine_code(
        function,
        inline="always",
        nogil=True,
        fastmath={"reassoc", "contract", "nsz"},
        error_model="numpy",
    )


# Three arrays of this many float32 values fit the first-level cache of a core.
_BLOCK = 1024
# Above this, exp and its product with a weight stay in the normal range of float32.
_FLOOR_NATS = np.float32(-80.0)
# Replaces -inf, so that 0 ln 0 is a tiny number and never NaN.
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


# The compiler calls numpy's exp and log per element; these functions become vector code.


@_vectorised
def exp32(x: np.float32) -> np.float32:
    """Compute exp of a float32 in [-87, 87]: 2^n times a polynomial of the rest, <= ln(2)/2."""
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


@_vectorised
def log32(x: np.float32) -> np.float32:
    """Compute ln of a normal float32: n ln 2 + 2 artanh(s); x = 2^n m, s = (m - 1) / (m + 1)."""
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


@_vectorised
def _some_impossible(logprob: Float32) -> bool:
    """Whether some, but not all, members exclude a token or nearly do; logprob [member, vocab]."""
    for k in range(logprob.shape[1]):
        low = excluded = 0
        for member in range(logprob.shape[0]):
            low += logprob[member, k] < _FLOOR_NATS
            excluded += logprob[member, k] < _IMPOSSIBLE_NATS
        if low and excluded < logprob.shape[0]:
            return True
    return False


@_vectorised
def float32_sums(
    logprob: Float32, weight: Float32, member_sums: Float64, sums: Float64, masses: Float64
) -> NDArray[np.bool_]:
    """Add sums over the vocabulary to the last three arrays; return which rows are inexact.

    logprob [row, member, vocab] and weight [row, member], of ExPr. member_sums [row, member]:
    sum_k P_m ln P_m; sums [row, 5]: the same of PrEx; of ExPr; sum_k P_PE mean_m ln P_m; of P_EP;
    sum_k P_PE ln P_EP; masses [row, member]: sum_k P_m. Returns [row]: true if one member gives a
    token less than exp(-80) and not all members give it 0. The sums of such a row must not be used.
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
                own = mass = np.float32(0)
                for k in range(size):
                    x = max(values[k], _IMPOSSIBLE_NATS)
                    low |= np.int32(x < _FLOOR_NATS)
                    total[k] += x
                    p = exp32(max(x, _FLOOR_NATS))
                    own += p * x
                    mass += p
                    prex[k] += p
                    expr[k] += w * p
                member_sums[row, member] += own
                masses[row, member] += mass
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


# Below this, exp leaves the normal range of float32.
_LOWEST = np.float32(-86.0)
_ZERO = np.float32(0.0)
_SIGN_BIT = np.int32(31)
_ALL_BUT_SIGN = np.int32(2**31 - 1)


@_vectorised
def highest_value(values: Float32) -> np.float32:
    """Maximum of float32 values; undefined if one of them is NaN."""
    # Bits mapped to integers that have the same order: only their maximum becomes vector code.
    bits = values.view(np.int32)
    highest = np.int32(-(2**31))
    for k in range(len(bits)):
        value = bits[k]
        highest = max(highest, value ^ ((value >> _SIGN_BIT) & _ALL_BUT_SIGN))
    float_bits = np.int32(highest ^ ((highest >> _SIGN_BIT) & _ALL_BUT_SIGN))
    return np.float32(float_bits.view(np.float32))


@_vectorised
def _exponentials(values: Float32, highest: np.float32, exponential: Float32) -> np.float32:
    """Fill in exp(value - highest) and return their sum, which is NaN if a value is NaN."""
    total = _ZERO
    has_nan = np.int32(0)
    for k in range(len(values)):
        x = values[k] - highest
        has_nan |= np.int32(x != x)
        value = exp32(x if x > _LOWEST else _LOWEST)
        exponential[k] = value
        total += value
    return np.float32(np.nan) if has_nan else total


@_vectorised
def _mix_members(
    logits: Float32,
    row: int,
    weight: Float32,
    exponential: Float32,
    log_total: Float32,
    posterior: Float32,
) -> None:
    """Fill in the posterior sum_m w_m P_m and each member's log-normaliser for one prefix.

    logits [member, row, vocab], contiguous; weight [member]; exponential [vocab]: working memory.
    Filled in: log_total [member], ln sum_k exp(logit), NaN if a logit is NaN; posterior [vocab],
    inexact below exp(-80).
    """
    posterior[:] = 0
    for member in range(len(logits)):
        values = logits[member, row]
        highest = highest_value(values)
        total = _exponentials(values, highest, exponential)
        log_total[member] = log32(total) + highest
        if total != total or not np.isfinite(highest):
            log_total[member] = np.nan
        w = weight[member] / total
        for k in range(len(posterior)):
            posterior[k] += w * exponential[k]


# Smaller posterior probabilities are inexact; they are set to 0.
_LEAST = np.float32(1e-34)


@_vectorised
def posteriors(logits: Float32, weight: Float32, log_total: Float32, probability: Float32) -> None:
    """Fill in the posterior after each prefix, and the members' log-normalisers.

    logits [member, row, vocab], contiguous; weight [row, member] of the members in the posterior.
    Filled in: log_total [row, member], NaN if a logit is NaN; probability [row, vocab], 0 where it
    would be below 1e-34.
    """
    n_row, n_vocab = probability.shape
    exponential = np.empty(n_vocab, np.float32)
    for row in range(n_row):
        posterior = probability[row]
        _mix_members(logits, row, weight[row], exponential, log_total[row], posterior)
        for k in range(n_vocab):
            posterior[k] = posterior[k] if posterior[k] > _LEAST else np.float32(0)


@_vectorised
def draw_tokens(
    probability: Float32, uniform: NDArray[np.float64], token: NDArray[np.int64]
) -> None:
    """Fill in a token for each row by inverting the cumulative distribution at `uniform`.

    probability [row, vocab], unnormalised, with at least one value above 0 per row; uniform [row]
    in [0, 1); token [row]. A token of probability 0 is never drawn.
    """
    n_row, n_vocab = probability.shape
    for row in range(n_row):
        weights = probability[row]
        total = 0.0
        for k in range(n_vocab):
            total += weights[k]
        target = uniform[row] * total
        mass = 0.0
        for k in range(n_vocab):
            if weights[k] > 0:
                # If rounding keeps the mass below the target, the last possible token is kept.
                token[row] = k
                mass += weights[k]
                if mass > target:
                    break


# Number of tokens that are compared at once with the weakest of the top tokens.
_GROUP = 64


@_vectorised
def _keep_top(posterior: Float32, best: Float32, token: NDArray[np.int64]) -> None:
    """Fill in the len(best) largest values of posterior [vocab], largest first, ties by id."""
    n_best, n_kept, n_vocab = len(best), 0, len(posterior)
    for start in range(0, n_vocab, _GROUP):
        end = min(start + _GROUP, n_vocab)
        if n_kept == n_best and highest_value(posterior[start:end]) <= best[n_best - 1]:
            continue
        for k in range(start, end):
            value = posterior[k]
            if n_kept < n_best:
                n_kept += 1
            elif value <= best[n_best - 1]:
                continue
            position = n_kept - 1
            while position > 0 and best[position - 1] < value:
                best[position] = best[position - 1]
                token[position] = token[position - 1]
                position -= 1
            best[position] = value
            token[position] = k


@_vectorised
def top_tokens(
    logits: Float32,
    weight: Float32,
    mask_factor: Float32,
    log_total: Float32,
    best: Float32,
    token: NDArray[np.int64],
) -> None:
    """Fill in the most probable next tokens under the posterior, and the log-normalisers.

    logits [member, row, vocab], contiguous; weight [row, member] of the members in the posterior;
    mask_factor [vocab]: exp of the score mask, so 0 for tokens that must not be chosen. Filled in:
    log_total [row, member], NaN if a logit is NaN; best [row, n]: mask_factor * P_post, largest
    first, inexact below exp(-80); token [row, n].
    """
    n_row, n_vocab = logits.shape[1:]
    exponential = np.empty(n_vocab, np.float32)
    posterior = np.empty(n_vocab, np.float32)
    for row in range(n_row):
        _mix_members(logits, row, weight[row], exponential, log_total[row], posterior)
        for k in range(n_vocab):
            posterior[k] *= mask_factor[k]
        _keep_top(posterior, best[row], token[row])

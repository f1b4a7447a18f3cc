"""Compiled passes over the logits: the posterior of the next token, its top tokens, and draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.kernel import compiled, exp32, log32

Float32 = NDArray[np.float32]

# Below this, exp leaves the normal range of float32.
_LOWEST = np.float32(-86.0)
_ZERO = np.float32(0.0)
_SIGN_BIT = np.int32(31)
_ALL_BUT_SIGN = np.int32(2**31 - 1)


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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

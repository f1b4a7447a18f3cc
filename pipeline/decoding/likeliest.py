"""Each prefix's likeliest next tokens under the ensemble, in one compiled pass over the logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.uncertainty.fused import compiled, exp32, log32

Float32 = NDArray[np.float32]

# Tokens that are compared with the weakest of the likeliest at once.
_GROUP = 64
# exp of less leaves the normal range of float32.
_LOWEST = np.float32(-86.0)
_ZERO = np.float32(0.0)
_SIGN_BIT = np.int32(31)
_ALL_BUT_SIGN = np.int32(2**31 - 1)


@compiled
def _highest(values: Float32) -> np.float32:
    """The maximum; NaN may win or not."""
    # Whole numbers in the order of the float32 of their bits: their maximum becomes vector code.
    bits = values.view(np.int32)
    highest = np.int32(-(2**31))
    for k in range(len(bits)):
        one = bits[k]
        highest = max(highest, one ^ ((one >> _SIGN_BIT) & _ALL_BUT_SIGN))
    back = np.int32(highest ^ ((highest >> _SIGN_BIT) & _ALL_BUT_SIGN))
    return np.float32(back.view(np.float32))


@compiled
def _shares(values: Float32, highest: np.float32, shares: Float32) -> np.float32:
    """exp(value - highest) into shares, and their sum; NaN where a value is NaN."""
    total = _ZERO
    faults = np.int32(0)
    for k in range(len(values)):
        x = values[k] - highest
        faults |= np.int32(x != x)
        share = exp32(x if x > _LOWEST else _LOWEST)
        shares[k] = share
        total += share
    return np.float32(np.nan) if faults else total


@compiled
def _keep_likeliest(posterior: Float32, best: Float32, token: NDArray[np.int64]) -> None:
    """The len(best) largest of posterior [vocab], largest first; the lower id where equal."""
    n_best, n_found, n_vocab = len(best), 0, len(posterior)
    for start in range(0, n_vocab, _GROUP):
        end = min(start + _GROUP, n_vocab)
        if n_found == n_best and _highest(posterior[start:end]) <= best[n_best - 1]:
            continue
        for k in range(start, end):
            value = posterior[k]
            if n_found < n_best:
                n_found += 1
            elif value <= best[n_best - 1]:
                continue
            place = n_found - 1
            while place > 0 and best[place - 1] < value:
                best[place] = best[place - 1]
                token[place] = token[place - 1]
                place -= 1
            best[place] = value
            token[place] = k


@compiled
def likeliest_tokens(
    logits: Float32,
    weight: Float32,
    factor: Float32,
    log_total: Float32,
    best: Float32,
    token: NDArray[np.int64],
) -> None:
    """Fill in ln of the sum of exp of logits, and the likeliest tokens under the posterior.

    logits [member, row, vocab], contiguous; weight [row, member] of the members; factor [vocab]: on
    the posterior of a token, 0 for those that must not be chosen. Filled in: log_total
    [row, member], NaN where logits are; best [row, n], likeliest first: factor * P_post; token
    [row, n]. A best below exp(-80) is not exact.
    """
    n_member, n_row, n_vocab = logits.shape
    shares = np.empty((n_member, n_vocab), np.float32)
    posterior = np.empty(n_vocab, np.float32)
    scale = np.empty(n_member, np.float32)
    for row in range(n_row):
        for member in range(n_member):
            values = logits[member, row]
            highest = _highest(values)
            total = _shares(values, highest, shares[member])
            log_total[row, member] = log32(total) + highest
            if total != total or not np.isfinite(highest):
                log_total[row, member] = np.nan
            scale[member] = weight[row, member] / total
        posterior[:] = 0
        for member in range(n_member):
            share = shares[member]
            w = scale[member]
            for k in range(n_vocab):
                posterior[k] += w * share[k]
        for k in range(n_vocab):
            posterior[k] *= factor[k]
        _keep_likeliest(posterior, best[row], token[row])

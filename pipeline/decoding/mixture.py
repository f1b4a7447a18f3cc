"""The posterior of the next token from the members' logits, compiled: each logit is read once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.uncertainty.fused import compiled, exp32, log32

Float32 = NDArray[np.float32]

# exp of less leaves the normal range of float32.
_LOWEST = np.float32(-86.0)
_ZERO = np.float32(0.0)
_SIGN_BIT = np.int32(31)
_ALL_BUT_SIGN = np.int32(2**31 - 1)


@compiled
def highest_value(values: Float32) -> np.float32:
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
def mix(
    logits: Float32,
    row: int,
    weight: Float32,
    shares: Float32,
    log_total: Float32,
    posterior: Float32,
) -> None:
    """Fill in ln of the sum of exp of logits, and sum_m w_m P_m, after the prefix `row`.

    logits [member, row, vocab], contiguous; weight [member]; shares [vocab]: to work in. Filled in:
    log_total [member], NaN where logits are; posterior [vocab], not exact below exp(-80).
    """
    posterior[:] = 0
    for member in range(len(logits)):
        values = logits[member, row]
        highest = highest_value(values)
        total = _shares(values, highest, shares)
        log_total[member] = log32(total) + highest
        if total != total or not np.isfinite(highest):
            log_total[member] = np.nan
        w = weight[member] / total
        for k in range(len(posterior)):
            posterior[k] += w * shares[k]

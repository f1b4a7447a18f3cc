"""Whether log-probs are those of distributions: probabilities that sum to 1."""

from __future__ import annotations

from math import log, prod

import numpy as np
from numpy.typing import NDArray

from pipeline.store.statistics import Array

SUM_RULE = "probabilities must sum to 1"
# Values whose exponentials are computed at a time, so that they stay in a cache of the processor.
_BLOCK_VALUES = 2**16
_HALF_ROUNDING, _FLOAT32_ROUNDING = 2.0**-11, 2.0**-24
# Magnitude of logits up to which rounding is tolerated.
_LARGEST_LOGIT = 100


def total_probability(logprob: Array) -> NDArray[np.float64]:
    """Sum the probabilities over the last axis; NaN if one of them is NaN."""
    size = logprob.shape[-1]
    rows = logprob.reshape(prod(logprob.shape[:-1]), size)
    total = np.empty(len(rows))
    step = max(1, _BLOCK_VALUES // max(1, size))
    dtype = np.promote_types(logprob.dtype, np.float32)
    with np.errstate(over="ignore"):  # logits may overflow; their sum is then infinite
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            total[start : start + step] = np.exp(block, dtype=dtype).sum(axis=-1)
    return total.reshape(logprob.shape[:-1])


def sum_tolerance(vocab_size: int) -> float:
    """Return how far from 1 rounding alone can move the sum of a softmax over a vocabulary.

    Half precision stores a log-prob x with a relative error of at most u = 2^-11, which changes the
    sum by at most u sum_k p_k |x_k| = u H <= u ln V. This holds for arrays of any type, because
    values of half precision may have been widened later. The softmax is computed in float32 at
    best: its sum of V terms has a relative error of at most V u, and logits of magnitude z add z u,
    where u = 2^-24.
    """
    return _HALF_ROUNDING * log(vocab_size) + _FLOAT32_ROUNDING * (vocab_size + _LARGEST_LOGIT)


def sum_fault(logprob: Array, vocab_size: int, tail_logprob: Array | None = None) -> str | None:
    """Say where probabilities do not sum to 1, and what the values may be; None if they do.

    logprob [token, member, vocab], or [token, member, k] if tail_logprob [token, member] has the
    total of the other tokens.
    """
    total = total_probability(logprob)
    if tail_logprob is not None:
        total += np.exp(tail_logprob, dtype=np.float64)
    tolerance = sum_tolerance(vocab_size)
    fits = np.abs(total - 1) <= tolerance
    if fits.all():
        return None
    is_nan = np.isnan(total).any(axis=1)
    if is_nan.any():
        return f"NaN at token {int(is_nan.argmax())}. Give log-probs; -inf is allowed."
    token, member = map(int, np.argwhere(~fits)[0])
    found = "" if tail_logprob is not None else f"; {_kind(logprob[token, member], tolerance)}"
    return (
        f"token {token}, member {member}: {SUM_RULE} to within {tolerance:.1g} "
        f"(got {total[token, member]:.6g}{found}). Give the log-softmax over all tokens in nats, "
        f"without masks, penalties or temperature."
    )


def _kind(logprob: Array, tolerance: float) -> str:
    """Say in words what the values [vocab] of a distribution may be that are no log-probs."""
    values = logprob.astype(np.float64)
    for base in (2, 10):
        if abs(total_probability(values * log(base)) - 1) <= tolerance:
            return f"logarithms to base {base}"
    if values.min() >= 0 and abs(values.sum() - 1) <= tolerance:
        return "probabilities, not their logarithms"
    return "logits, or scores that were masked or changed after the softmax"


def entropy_bounds(logprob: Array, vocab_size: int) -> tuple[Array, Array]:
    """Return the lowest and highest entropy, in nats, of a distribution with this log-prob.

    The entropy is lowest if one other token has all the rest, and highest if all other tokens share
    it evenly.
    """
    log_p = np.minimum(logprob.astype(np.float64), 0.0)
    rest = -np.expm1(log_p)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 ln 0 is 0
        lowest = -np.where(rest < 1, np.exp(log_p) * log_p, 0.0)
        lowest -= np.where(rest > 0, rest * np.log(rest), 0.0)
    return lowest, lowest + rest * log(max(vocab_size - 1, 1))

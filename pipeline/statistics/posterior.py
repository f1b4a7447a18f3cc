"""Log-probs under the members and the two posteriors: of tokens, prefixes and sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class SequenceLogprob:
    """Log-probs of hypotheses: member [hypothesis, member]; prex and expr [hypothesis]."""

    member: Float64
    prex: Float64
    expr: Float64


def sequence_logprob(logprob: Array, token_offset: NDArray[np.integer]) -> SequenceLogprob:
    """Sum the log-probs of the realised tokens of each hypothesis.

    logprob [token, member] in nats; token_offset [hypothesis + 1], from 0; every hypothesis has a
    token. Source: eqn:ensemble-combinations (PrEx: a product of means, ExPr: a mean of products).
    """
    equal_weights = -np.log(logprob.shape[1])
    columns = np.column_stack([logprob, log_mean(logprob, equal_weights)])
    sums = np.add.reduceat(columns.astype(np.float64, copy=False), token_offset[:-1], axis=0)
    member, prex = sums[:, :-1], sums[:, -1]
    return SequenceLogprob(member, prex, log_mean(member, equal_weights))


def prefix_logprob(logprob: Array, token_offset: NDArray[np.integer]) -> Float64:
    """Return ln P(y_<l | x, theta_m) at each token of each hypothesis, [token, member].

    logprob [token, member] in nats; token_offset [hypothesis + 1], from 0.
    """
    values = np.asarray(logprob, dtype=np.float64)
    impossible = np.isneginf(values)
    # -inf is counted separately: a running sum could not recover at the next hypothesis.
    finite = _running_sum(np.where(impossible, 0.0, values), token_offset)
    if not impossible.any():
        return finite
    return np.where(_running_sum(impossible.astype(np.float64), token_offset) > 0, -np.inf, finite)


def _running_sum(values: Float64, token_offset: NDArray[np.integer]) -> Float64:
    before: Float64 = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values, axis=0, out=before[1:])
    start = np.repeat(token_offset[:-1], np.diff(token_offset))
    return before[:-1] - before[start]


def expr_log_weight(prefix_logprob: Array) -> Float64:
    """Return ln w_m, w_m proportional to P(y_<l | x, theta_m): [row, member] to [row, member].

    The weights are uniform where every member excludes the prefix.
    Source: eqn:token-posterior-sequence-level-bma.
    """
    prefix = np.asarray(prefix_logprob, dtype=np.float64)
    prefix = np.where(np.isneginf(_highest(prefix))[:, np.newaxis], 0.0, prefix)
    prefix = prefix - _highest(prefix)[:, np.newaxis]
    log_weight: Float64 = prefix - np.log(_member_sum(np.exp(prefix)))[:, np.newaxis]
    return log_weight


def log_mean(logprob: Array, log_weight: Array | float) -> Float64:
    """Return ln sum_m w_m P_m over the member axis 1, in float64; -inf where every P_m is 0.

    log_weight: ln w_m, an array or, for equal weights, -ln M.
    """
    terms: Float64 = np.asarray(logprob + log_weight, dtype=np.float64)
    shift = _highest(terms)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    with np.errstate(divide="ignore"):
        result: Float64 = np.log(_member_sum(np.exp(terms - shift[:, np.newaxis]))) + shift
    return result


def member_mean(values: Array) -> Float64:
    """Return the mean over the member axis 1, in float64."""
    mean: Float64 = _member_sum(values.astype(np.float64)) / values.shape[1]
    return mean


# numpy reduces a short last axis slowly: adding member by member is several times faster.
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

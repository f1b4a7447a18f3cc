"""Negative log-likelihood of references, from what teacher forcing stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.statistic import FloatArray


@dataclass(frozen=True)
class SentenceNll:
    """-ln P(reference) / L in nats per token, L counting EOS.

    `prex` and `expr` [sentence] under the two ensemble posteriors; `single` [member, sentence].
    """

    prex: FloatArray
    expr: FloatArray
    single: FloatArray


def sentence_nll(logprob: NDArray[np.floating], token_offset: NDArray[np.integer]) -> SentenceNll:
    """Length-normalised negative log-likelihood of each sentence.

    `logprob` [token, member] in nats, `token_offset` [sentence + 1], every sentence with at least
    one token. +inf where a posterior gives probability 0. Source: `eqn:ensemble-combinations`.
    """
    per_token = logprob.astype(np.float64)
    length = np.diff(token_offset)
    starts = token_offset[:-1]
    if not len(length):
        n_member = per_token.shape[1]
        return SentenceNll(np.empty(0), np.empty(0), np.empty((n_member, 0)))
    member_sum = np.add.reduceat(per_token, starts, axis=0)
    prex_sum = np.add.reduceat(_log_mean_exp(per_token), starts)
    return SentenceNll(
        -prex_sum / length, -_log_mean_exp(member_sum) / length, -(member_sum / length[:, None]).T
    )


def _log_mean_exp(logprob: FloatArray) -> FloatArray:
    """ln of the mean over members of P: [row, member] -> [row]."""
    highest = logprob.max(axis=1)
    # ln 0 of every member: no finite maximum to take out.
    shift = np.where(np.isfinite(highest), highest, 0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logprob - shift[:, None]).mean(axis=1)) + shift)

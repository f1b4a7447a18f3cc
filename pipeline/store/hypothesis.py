"""The content of a decode store: hypotheses, and the distributions that a dump keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.store.statistics import Array, TokenStatistics


@dataclass(frozen=True)
class TopK:
    """The k most probable tokens of each position under PrEx.

    token_id [token, k]; logprob [token, member, k] in nats; tail_logprob [token, member]: log of
    the total probability of all other tokens.
    """

    token_id: NDArray[np.integer[Any]]
    logprob: Array
    tail_logprob: Array


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a sentence: token_id [token] with everything that is stored about it.

    score: search score, after the length penalty. finished: whether the last token is EOS. member:
    the member that drew it if combination=member, else -1. full_logprob [token, member, vocab]
    (nats, float16 or float32) and topk are set only for their dumps.
    """

    token_id: NDArray[np.integer[Any]]
    text: str
    score: float
    finished: bool
    statistics: TokenStatistics
    member: int = -1
    full_logprob: Array | None = None
    topk: TopK | None = None

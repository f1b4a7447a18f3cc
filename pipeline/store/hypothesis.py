"""What a decoder hands to the store: a hypothesis and the statistics of its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.store.statistics import Array, TokenStatistics


@dataclass(frozen=True)
class TopK:
    """The k likeliest tokens of each position under PrEx.

    token_id [token, k]; logprob [token, member, k] in nats; tail_logprob [token, member]: the
    log of the probability of all other tokens.
    """

    token_id: NDArray[np.integer[Any]]
    logprob: Array
    tail_logprob: Array


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a sentence: token_id [token] and what belongs to it.

    score is the search score (after length penalty); finished says that the last token is EOS;
    member is the member that drew it under `combination=member`, else -1; full_logprob
    [token, member, vocab] (nats, float16 or float32) and topk are there for their dumps only.
    """

    token_id: NDArray[np.integer[Any]]
    text: str
    score: float
    finished: bool
    statistics: TokenStatistics
    member: int = -1
    full_logprob: Array | None = None
    topk: TopK | None = None

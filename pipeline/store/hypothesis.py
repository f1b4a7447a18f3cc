"""What a decoder hands to the store: a hypothesis and the statistics of its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TokenStatistics:
    """What every measure of the paper needs of the token distributions of one hypothesis, in nats.

    logprob [token, member]: ln P_m of the token that stands there; entropy_member [token, member];
    the others [token]: entropy_prex, entropy_expr: of the posterior; cross_prex, cross_expr: mean
    over members of -sum_k P_post(k) ln P_m(k); cross_member_expr: mean over members of
    -sum_k P_m(k) ln P_EP(k).
    """

    logprob: Array
    entropy_member: Array
    entropy_prex: Array
    entropy_expr: Array
    cross_prex: Array
    cross_expr: Array
    cross_member_expr: Array


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

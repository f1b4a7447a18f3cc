"""The hypotheses that a search found for a sentence: ordered best first, none of them twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.store.schema import SEARCHES

# Scores that were rounded to float32 may seem to be in another order by a few units of rounding.
_ROUNDING = 2.0**-20
_ORDERED = "must be in descending order, because a search orders its hypotheses best first"
_DISTINCT = "must differ from the tokens of the other hypotheses of the same search"


@dataclass(frozen=True)
class RankingFault:
    """A hypothesis that breaks a rule: its rank, the dataset, the rule and the values."""

    rank: int
    dataset: str
    rule: str
    got: str


def is_ranked(regime: str, combination: str) -> bool:
    """Whether the rules apply: samples, and hypotheses of single members, have no order."""
    return regime in SEARCHES and combination != "member"


def ranking_fault(
    score: Sequence[float], tokens: Sequence[NDArray[np.integer[Any]]]
) -> RankingFault | None:
    """The first hypothesis of a sentence that is out of order, else the first that is repeated.

    score [hypothesis]: search scores; equal ones may follow each other. tokens: token ids of each
    hypothesis.
    """
    for rank, (before, after) in enumerate(pairwise(score), 1):
        # The smaller one is finite unless both are infinite.
        tolerance = _ROUNDING * max(1.0, min(abs(before), abs(after)))
        if after > before and not after - before <= tolerance:
            got = f"{after:.6g} after {before:.6g}"
            return RankingFault(rank, "/hypothesis/score", _ORDERED, got)
    for rank, first in enumerate(first_ranks(tokens)):
        if first < rank:
            got = f"the {len(tokens[rank])} tokens of hypothesis {first}"
            return RankingFault(rank, "/token/id", _DISTINCT, got)
    return None


def first_ranks(tokens: Sequence[Sequence[int] | NDArray[np.integer[Any]]]) -> Iterator[int]:
    """Yield, for each hypothesis of a sentence, the rank of the first one with the same tokens."""
    first_of: dict[bytes, int] = {}
    for rank, token in enumerate(tokens):
        yield first_of.setdefault(np.asarray(token, dtype=np.int64).tobytes(), rank)

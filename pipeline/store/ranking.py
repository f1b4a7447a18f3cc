"""The hypotheses that a search found for a sentence: ordered best first, none of them twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.store.reader import Store
from pipeline.store.schema import SEARCHES

# Scores that were rounded to float32 may seem to be in another order by a few units of rounding.
_ROUNDING = 2.0**-20
_SENTENCES = 2**10  # whose hypotheses are compared at a time


def is_ranked(regime: str, combination: str) -> bool:
    """Whether the rules apply: samples, and hypotheses of single members, have no order."""
    return regime in SEARCHES and combination != "member"


def ranking_warning(store: Store) -> str | None:
    """Warn if hypotheses of a search are out of order or repeated; None if they are not."""
    if not is_ranked(store.regime, store.combination):
        return None
    out_of_order: list[int] = []
    repeated: list[int] = []
    for start in range(0, store.n_sentence, _SENTENCES):
        bounds = store.hypothesis_offset[start : start + _SENTENCES + 1]
        offset = store.token_offset[bounds[0] : bounds[-1] + 1]
        score = store.read("/hypothesis/score", bounds[0], bounds[-1]).tolist()
        token = store.read("/token/id", offset[0], offset[-1])
        tokens = np.split(token, offset[1:-1] - offset[0])
        for sentence, (first, last) in enumerate(pairwise(bounds - bounds[0]), start):
            if not is_descending(score[first:last]):
                out_of_order.append(sentence)
            if any(same < rank for rank, same in enumerate(first_ranks(tokens[first:last]))):
                repeated.append(sentence)
    found = [
        f"{len(sentences)} of {store.n_sentence} sentences have {what} (first: sentence "
        f"{sentences[0]})"
        for sentences, what in (
            (out_of_order, "scores that are not in descending order"),
            (repeated, "hypotheses with the same tokens"),
        )
        if sentences
    ]
    if not found:
        return None
    return (
        f"{store.path}: {' and '.join(found)}. Metrics take the first hypothesis as the output, "
        f"and a repeated one counts twice in measures. Write the hypotheses of a search best "
        f"first, each once."
    )


def is_descending(score: Sequence[float]) -> bool:
    """Whether no score [hypothesis] exceeds the one before it, except by rounding."""
    for before, after in pairwise(score):
        # The smaller one is finite unless both are infinite.
        tolerance = _ROUNDING * max(1.0, min(abs(before), abs(after)))
        if after > before and not after - before <= tolerance:
            return False
    return True


def first_ranks(tokens: Sequence[Sequence[int] | NDArray[np.integer[Any]]]) -> Iterator[int]:
    """Yield, for each hypothesis of a sentence, the rank of the first one with the same tokens."""
    first_of: dict[bytes, int] = {}
    for rank, token in enumerate(tokens):
        yield first_of.setdefault(np.asarray(token, dtype=np.int64).tobytes(), rank)

"""Compare search scores with the log-probs of the tokens: ln P / length ** length_penalty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.store.reader import Store

# Tolerance between decoding and rescoring, which add up float32 log-probs in different orders.
_TOLERANCE = 1e-4
_READ_BYTES = 2**25  # read at a time
_Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreComparison:
    """How many of `n` scores are off, and the largest difference of two finite scores.

    largest: relative, and in nats below 1 nat.
    """

    n: int
    n_off: int
    largest: float

    def summary(self) -> str:
        """Say in words how many scores are off and by how much."""
        percent = float(f"{100 * self.largest:.2g}")
        extent = f" by up to {percent:g} %" if self.largest > _TOLERANCE else ""
        return (
            f"{self.n_off} of {self.n} scores differ from ln P / length ** length_penalty{extent}"
        )


def compare_scores(score: _Float64, expected: _Float64) -> ScoreComparison:
    """Compare scores [hypothesis] with those expected; equal infinite ones agree."""
    both = np.isfinite(expected) & np.isfinite(score)
    scale = np.maximum(1.0, np.abs(expected[both]))
    differences = np.abs(score[both] - expected[both]) / scale
    n_off = int((differences > _TOLERANCE).sum())
    n_off += int((score[~both] != expected[~both]).sum())
    return ScoreComparison(len(score), n_off, float(differences.max(initial=0.0)))


def score_warning(store: Store) -> str | None:
    """Warn if scores do not follow from the log-probs of the tokens; None if they do.

    Also None if the store names no length penalty, or no posterior that decoded.
    """
    length_penalty = store.attributes.get("length_penalty")
    is_known = store.n_member == 1 or store.combination in ("prex", "expr")
    if length_penalty is None or not is_known or not store.n_hypothesis:
        return None
    logprob = np.concatenate(list(_sequence_logprob(store)))
    expected = logprob / np.diff(store.token_offset).astype(np.float64) ** length_penalty
    comparison = compare_scores(store.read("/hypothesis/score").astype(np.float64), expected)
    if not comparison.n_off:
        return None
    return (
        f"{store.path}: /hypothesis/score: {comparison.summary()} under combination="
        f"{store.combination} with length_penalty={length_penalty}. Correct these attributes or "
        f"the scores; if the search adds penalties to its scores, leave out length_penalty."
    )


def _sequence_logprob(store: Store) -> Iterator[_Float64]:
    """Yield ln P [hypothesis] of the next hypotheses under the posterior that decoded."""
    step = max(1, _READ_BYTES // (8 * store.n_member))
    offset, first = store.token_offset, 0
    while first < store.n_hypothesis:
        last = int(np.searchsorted(offset, offset[first] + step, side="right")) - 1
        last = max(last, first + 1)
        logprob = store.read("/token/logprob", offset[first], offset[last]).astype(np.float64)
        start = offset[first:last] - offset[first]
        if store.combination == "expr":  # a mean of products; prex is a product of means
            yield _log_mean(np.add.reduceat(logprob, start, axis=0))
        else:
            yield np.add.reduceat(_log_mean(logprob), start)
        first = last


def _log_mean(logprob: _Float64) -> _Float64:
    """ln of the mean probability over the member axis 1."""
    mean: _Float64 = np.logaddexp.reduce(logprob, axis=1) - np.log(logprob.shape[1])
    return mean

"""Paired bootstrap over sentences: 95 % intervals of any statistic, all on the same resamples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.quality.statistic import FloatArray, Statistic, point

# Weights held as float64 at once: 512 KiB, which stay in cache and which the allocator keeps.
_BLOCK_VALUES = 1 << 16


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; what is absent is None, and `reason` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@lru_cache(maxsize=4)
def resample_weights(n_sentence: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """How often each sentence is drawn: [resample, sentence], each row summing to `n_sentence`.

    The same numbers give the same weights. So measures of one test set share their resamples, and
    so do test sets of one size: those made from the same sentences are resampled together. The
    last few are kept, so the array is not to be written to.
    """
    generator = np.random.default_rng(seed)
    weights = np.zeros((resamples, n_sentence), dtype=np.uint16)
    rows = max(1, _BLOCK_VALUES // max(n_sentence, 1))
    for first in range(0, resamples, rows):
        block = weights[first : first + rows]
        drawn = generator.integers(n_sentence, size=block.shape)
        drawn += np.arange(len(block))[:, None] * n_sentence
        block[:] = np.bincount(drawn.ravel(), minlength=block.size).reshape(block.shape)
    weights.setflags(write=False)
    return weights


def estimate(statistic: Statistic, weights: NDArray[np.uint16]) -> Estimate:
    """Point estimate and percentile interval of a statistic on resamples [resample, sentence].

    No resamples: no interval. One sentence, or a resample on which the statistic is undefined:
    no interval and the reason. An undefined or infinite point has no value: its reason is for the
    caller to give, who knows what the statistic needs.
    """
    resamples, n_sentence = weights.shape
    value = point(statistic, n_sentence)
    if not np.isfinite(value):
        return Estimate(None)
    if not resamples:
        return Estimate(value)
    if n_sentence == 1:
        return Estimate(value, reason="a single sentence has no interval")
    draws = resampled(statistic, weights)
    undefined = int((~np.isfinite(draws)).sum())
    if undefined:
        return Estimate(
            value, reason=f"no interval: undefined in {undefined} of {resamples} resamples"
        )
    low, high = np.quantile(draws, (0.025, 0.975))
    return Estimate(value, float(low), float(high))


def resampled(statistic: Statistic, weights: NDArray[np.uint16]) -> FloatArray:
    """The statistic on every resample: weights [resample, sentence] -> [resample]."""
    rows = max(1, _BLOCK_VALUES // max(weights.shape[1], 1))
    blocks = [
        statistic(weights[first : first + rows].astype(np.float64))
        for first in range(0, len(weights), rows)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0)

"""Paired bootstrap over sentences: 95 % intervals of any weighted metric, on shared resamples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, point_estimate

# Number of weights converted to float64 at a time: 512 KiB, which fit in a core's cache.
_CHUNK_VALUES = 1 << 16


@dataclass(frozen=True)
class IntervalEstimate:
    """A value with its 95 % interval; `reason` says why the interval is None."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@lru_cache(maxsize=4)
def resample_weights(n_sentence: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """Count how often each sentence is drawn, [resample, sentence]; rows sum to `n_sentence`.

    Equal arguments give equal weights. All measures of a test set therefore share their resamples,
    and so do test sets of the same size that were made from the same sentences. Results are cached
    and read-only.
    """
    generator = np.random.default_rng(seed)
    weights = np.zeros((resamples, n_sentence), dtype=np.uint16)
    rows = max(1, _CHUNK_VALUES // max(n_sentence, 1))
    for first in range(0, resamples, rows):
        chunk = weights[first : first + rows]
        drawn = generator.integers(n_sentence, size=chunk.shape)
        drawn += np.arange(len(chunk))[:, None] * n_sentence
        chunk[:] = np.bincount(drawn.ravel(), minlength=chunk.size).reshape(chunk.shape)
    weights.setflags(write=False)
    return weights


def interval_estimate(metric: WeightedMetric, weights: NDArray[np.uint16]) -> IntervalEstimate:
    """Point estimate and percentile interval of a metric on resamples [resample, sentence].

    There is no interval without resamples, for a single sentence, or if the metric is undefined on
    a resample; the last two give a reason. An undefined or infinite point estimate has no value.
    Its reason is left to the caller, who knows what the metric needs.
    """
    resamples, n_sentence = weights.shape
    value = point_estimate(metric, n_sentence)
    if not np.isfinite(value):
        return IntervalEstimate(None)
    if not resamples:
        return IntervalEstimate(value)
    if n_sentence == 1:
        return IntervalEstimate(value, reason="a single sentence has no interval")
    draws = resampled_values(metric, weights)
    undefined = int((~np.isfinite(draws)).sum())
    if undefined:
        return IntervalEstimate(
            value, reason=f"no interval: undefined in {undefined} of {resamples} resamples"
        )
    low, high = np.quantile(draws, (0.025, 0.975))
    return IntervalEstimate(value, float(low), float(high))


def resampled_values(metric: WeightedMetric, weights: NDArray[np.uint16]) -> FloatArray:
    """Value of a metric on every resample: weights [resample, sentence] -> [resample]."""
    rows = max(1, _CHUNK_VALUES // max(weights.shape[1], 1))
    chunks = [
        metric(weights[first : first + rows].astype(np.float64))
        for first in range(0, len(weights), rows)
    ]
    return np.concatenate(chunks) if chunks else np.empty(0)

"""Bootstrap over groups of sentences: 95 % intervals of any weighted metric, on shared resamples.

Sentences of one page, recording or speaker resemble each other. A resample therefore draws whole
groups. Each group counts Poisson(1) times, independently of all other groups (the Poisson bootstrap
of Chamandy et al., "Estimating uncertainty for massive data streams", 2012). The counts depend only
on the seed and on the name of the group, so that test sets with common groups share their
resamples, whichever sentences each of them lacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, point_estimate

# An interval leaves out resamples in which the value is undefined, up to this share.
MOST_UNDEFINED = 0.05
_TAIL = 0.025
# Number of weights converted to float64 at a time: 512 KiB, which fit in a core's cache.
_CHUNK_VALUES = 1 << 16


@dataclass(frozen=True)
class Resamples:
    """How often each sentence counts in each resample.

    weights: [resample, sentence]. n_group: the number of groups of these sentences; of the
    sentences of two test sets, the number of the set that has fewer. unit: what a group is
    ("group" or "sentence"), as the signature of a cell names it.
    """

    weights: NDArray[np.uint8]
    n_group: int
    unit: str

    @property
    def n_sentence(self) -> int:
        """The number of sentences."""
        return int(self.weights.shape[1])

    def joined(self, resamples: Resamples) -> Resamples:
        """Return the resamples of these sentences, followed by those of a second test set."""
        return Resamples(
            np.concatenate([self.weights, resamples.weights], axis=1),
            min(self.n_group, resamples.n_group),
            "+".join(dict.fromkeys((self.unit, resamples.unit))),
        )


@dataclass(frozen=True)
class Interval:
    """A 95 % interval. `reason` says why there is none, or which resamples it leaves out."""

    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval and the values on the resamples, [resample].

    An undefined or infinite value is None. Its reason is left to the caller, who knows what the
    metric needs.
    """

    value: float | None
    interval: Interval
    draws: FloatArray


def resample(groups: Sequence[str], resamples: int, seed: int, unit: str = "group") -> Resamples:
    """Draw groups: `groups` [sentence] names the group of each sentence."""
    names = tuple(groups)
    return Resamples(_weights(names, resamples, seed), len(set(names)), unit)


@lru_cache(maxsize=16)
def _weights(groups: tuple[str, ...], resamples: int, seed: int) -> NDArray[np.uint8]:
    """Return read-only weights [resample, sentence]."""
    row = {name: index for index, name in enumerate(dict.fromkeys(groups))}
    counts = np.empty((resamples, len(row)), dtype=np.uint8)
    for name, index in row.items():
        counts[:, index] = _counts(name, resamples, seed)
    weights = counts[:, [row[name] for name in groups]]
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=8192)
def _counts(group: str, resamples: int, seed: int) -> NDArray[np.uint8]:
    """Return how often a group counts in each resample, [resample]."""
    name = int.from_bytes(hashlib.sha256(group.encode()).digest()[:16])
    return np.random.default_rng([seed, name]).poisson(1, resamples).astype(np.uint8)


def estimate(metric: WeightedMetric, resamples: Resamples) -> Estimate:
    """Return a metric's value and interval, and its values on the resamples."""
    value = point_estimate(metric, resamples.n_sentence)
    if not np.isfinite(value):
        return Estimate(None, Interval(), np.empty(0))
    draws = resampled_values(metric, resamples.weights)
    return Estimate(value, percentile_interval(draws, resamples.n_group), draws)


def percentile_interval(draws: FloatArray, n_group: int) -> Interval:
    """Return the expanded percentile interval of values on resamples, [resample].

    With G groups the plain percentile interval is too narrow: it neither knows that a variance over
    G groups is divided by G instead of G - 1, nor that this variance is itself estimated. The
    quantiles are therefore taken at Phi(-t sqrt(G / (G - 1))) on either side, where t is the 97.5 %
    quantile of Student's distribution with G - 1 degrees of freedom. Source: Hesterberg, "What
    Teachers Should Know About the Bootstrap", The American Statistician 69(4), 2015.

    Undefined values (NaN or infinite) are left out, and the reason counts them. There is no
    interval if they are more than `MOST_UNDEFINED` of all, without resamples, or for a single
    group.
    """
    # scipy.stats has the same functions, and takes several times as long to import.
    from scipy.special import ndtr, stdtrit

    if not len(draws):
        return Interval()
    if n_group < 2:
        return Interval(reason="a single group of sentences has no interval")
    defined = draws[np.isfinite(draws)]
    n_undefined = len(draws) - len(defined)
    counted = f"undefined in {n_undefined} of {len(draws)} resamples"
    if n_undefined > MOST_UNDEFINED * len(draws):
        return Interval(reason=f"no interval: {counted}")
    tail = ndtr(stdtrit(n_group - 1, _TAIL) * np.sqrt(n_group / (n_group - 1)))
    low, high = np.quantile(defined, (tail, 1 - tail))
    return Interval(float(low), float(high), counted if n_undefined else "")


def resampled_values(metric: WeightedMetric, weights: NDArray[np.uint8]) -> FloatArray:
    """Return a metric's value on every resample: weights [resample, sentence] -> [resample].

    The value is NaN where no sentence was drawn.
    """
    rows = max(1, _CHUNK_VALUES // max(weights.shape[1], 1))
    values: FloatArray = np.full(len(weights), np.nan)
    for first in range(0, len(weights), rows):
        chunk = weights[first : first + rows].astype(np.float64)
        drawn = chunk.any(axis=1)
        if drawn.any():
            values[first : first + rows][drawn] = metric(chunk[drawn])
    return values

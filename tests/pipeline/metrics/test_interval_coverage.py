"""How often 95 % intervals cover the truth, on simulated sentences in groups.

`pytest -s tests/pipeline/metrics/test_interval_coverage.py` prints the table of docs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pipeline.metrics.bootstrap import percentile_interval, resample, resampled_values
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, weighted_mean

pytestmark = pytest.mark.slow

_SIMULATIONS = 1000
_RESAMPLES = 1000


@dataclass(frozen=True)
class Population:
    """Sentences in groups: half of their variance is common to a group."""

    n_group: int
    value: Callable[[FloatArray], FloatArray]  # of a standard normal variable with groups
    truth: float

    def draws(self) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
        """Yield the group and the value of each sentence. Groups hold 2 to 76 sentences."""
        for seed in range(_SIMULATIONS):
            generator = np.random.default_rng([seed, self.n_group])
            size = np.minimum(1 + generator.geometric(0.1, self.n_group), 76)
            group = np.repeat(np.arange(self.n_group), size)
            common = generator.normal(size=self.n_group)[group]
            yield group, self.value(np.sqrt(0.5) * (common + generator.normal(size=len(group))))


def _error(normal: FloatArray) -> FloatArray:
    return (normal > 0.5).astype(np.float64)


POPULATIONS = {
    "normal, 40 groups": Population(40, lambda normal: normal, 0.0),
    "errors, 40 groups": Population(40, _error, float(stats.norm.sf(0.5))),
    "errors, 20 groups": Population(20, _error, float(stats.norm.sf(0.5))),
}


def _basic(draws: FloatArray, value: float) -> tuple[float, float]:
    low, high = np.quantile(draws, (0.025, 0.975))
    return 2 * value - high, 2 * value - low


def _student(draws: FloatArray, value: float, n_group: int) -> tuple[float, float]:
    low, high = stats.t.interval(0.95, n_group - 1, value, draws.std(ddof=1))
    return float(low), float(high)


def _ratio_of(sums: FloatArray, sizes: FloatArray) -> WeightedMetric:
    return lambda weights: (weights @ sums) / (weights @ sizes)


def coverage_percent(population: Population) -> dict[str, float]:
    """Form of the interval -> how often it covers the truth."""
    covered: dict[str, int] = {}
    for seed, (group, values) in enumerate(population.draws()):
        value, n_group = float(values.mean()), population.n_group
        # The mean over sentences is a ratio of sums over groups.
        sums, sizes = np.bincount(group, values), np.bincount(group).astype(np.float64)
        of_groups = resample([f"page {page}" for page in range(n_group)], _RESAMPLES, seed)
        draws = resampled_values(_ratio_of(sums, sizes), of_groups.weights)
        names = [f"newstest14:{number}" for number in range(len(values))]
        of_sentences = resample(names, _RESAMPLES, 0)
        by_sentence = resampled_values(weighted_mean(values), of_sentences.weights)
        expanded = percentile_interval(draws, n_group)
        sentences = percentile_interval(by_sentence, len(values))
        intervals = {
            "percentile": np.quantile(draws, (0.025, 0.975)),
            "basic": _basic(draws, value),
            "t": _student(draws, value, n_group),
            "expanded percentile": (expanded.low, expanded.high),
            "by sentence": (sentences.low, sentences.high),
        }
        for form, (low, high) in intervals.items():
            covered[form] = covered.get(form, 0) + bool(low <= population.truth <= high)
    return {form: 100 * count / _SIMULATIONS for form, count in covered.items()}


@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_by_group_cover_the_truth_and_intervals_by_sentence_do_not(name: str) -> None:
    percent = coverage_percent(POPULATIONS[name])
    print(name, {form: round(share, 1) for form, share in percent.items()})
    assert 92 <= percent["expanded percentile"] <= 97
    assert percent["by sentence"] < 80

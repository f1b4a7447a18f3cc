"""Correlations, by hand and against scipy.stats, also on resamples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import resample
from pipeline.metrics.correlation import weighted_kendall, weighted_pearson, weighted_spearman
from pipeline.quality.weighted_metric import WeightedMetric, point_estimate

CORRELATIONS = {
    "pearson": (weighted_pearson, stats.pearsonr),
    "spearman": (weighted_spearman, stats.spearmanr),
    "kendall": (weighted_kendall, stats.kendalltau),
}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile before all tests, because Hypothesis limits the time of each example."""
    for correlation, _ in CORRELATIONS.values():
        point_estimate(correlation([0, 1], [1, 0]), 2)


def brute_force_tau_b(x: np.ndarray, y: np.ndarray) -> float:
    pairs = list(itertools.combinations(range(len(x)), 2))
    signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
    in_x, in_y = (sum(sign[side] != 0 for sign in signs) for side in (0, 1))
    return float(sum(a * b for a, b in signs) / np.sqrt(in_x * in_y)) if in_x * in_y else np.nan


def test_by_hand() -> None:
    x, y = [1, 2, 3, 4], [1, 3, 2, 10]
    # Deviations (-1.5, -0.5, 0.5, 1.5) and (-3, -1, -2, 6): 13 / sqrt(5 * 50).
    assert point_estimate(weighted_pearson(x, y), 4) == pytest.approx(13 / np.sqrt(250))
    # Ranks of y are 1, 3, 2, 4: 1 - 6 * 2 / (4 * 15).
    assert point_estimate(weighted_spearman(x, y), 4) == pytest.approx(0.8)
    # Five concordant pairs, one discordant.
    assert point_estimate(weighted_kendall(x, y), 4) == pytest.approx(4 / 6)
    # One pair of six is tied in the first value, none in the second: 4 - 1 over sqrt(5 * 6).
    assert point_estimate(weighted_kendall([1, 2, 2, 4], y), 4) == pytest.approx(5 / np.sqrt(30))


@pytest.mark.parametrize("name", CORRELATIONS)
@given(
    values=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=15),
    seed=st.integers(0, 99),
)
def test_a_weighted_correlation_is_that_of_the_repeated_sentences(
    name: str, values: list[tuple[int, int]], seed: int
) -> None:
    ours, scipys = CORRELATIONS[name]
    x, y = np.array(values, dtype=float).T
    weights = np.random.default_rng(seed).poisson(1, len(x))
    assert_equals_scipy(ours(x, y), np.ones(len(x), dtype=int), x, y, scipys)
    if weights.any():
        assert_equals_scipy(ours(x, y), weights, x, y, scipys)


def assert_equals_scipy(
    ours: WeightedMetric, weights: np.ndarray, x: np.ndarray, y: np.ndarray, scipys: object
) -> None:
    value = ours(weights[np.newaxis].astype(float))[0]
    drawn_x, drawn_y = np.repeat(x, weights), np.repeat(y, weights)
    if len(set(drawn_x)) < 2 or len(set(drawn_y)) < 2:
        assert np.isnan(value)
        return
    assert value == pytest.approx(scipys(drawn_x, drawn_y).statistic, abs=1e-12)  # type: ignore[operator]
    assert -1 <= value <= 1


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_kendall_equals_all_pairs(values: list[tuple[int, int]]) -> None:
    x, y = np.array(values, dtype=float).T
    expected = brute_force_tau_b(x, y)
    assert point_estimate(weighted_kendall(x, y), len(x)) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_correlations_of_many_sentences_equal_those_of_scipy(name: str) -> None:
    ours, scipys = CORRELATIONS[name]
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    y = x + random.normal(size=300).round(1)
    metric = ours(x, y)
    assert point_estimate(metric, 300) == pytest.approx(scipys(x, y).statistic)
    weights = resample([str(i // 3) for i in range(300)], 20, seed=1).weights
    expected = [scipys(np.repeat(x, w), np.repeat(y, w)).statistic for w in weights]
    np.testing.assert_allclose(metric(weights.astype(float)), expected)


@pytest.mark.parametrize("name", CORRELATIONS)
@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0.0), (100.0, -7.0), (1e200, 0.0)])
def test_units_do_not_matter_and_a_reversed_score_changes_the_sign(
    name: str, scale: float, shift: float
) -> None:
    correlation, _ = CORRELATIONS[name]
    random = np.random.default_rng(2)
    x, y = random.normal(size=(2, 50))
    value = point_estimate(correlation(x, y), 50)
    assert point_estimate(correlation(scale * x + shift, y), 50) == pytest.approx(value)
    assert point_estimate(correlation(x, -y), 50) == pytest.approx(-value)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_resample_of_equal_values_is_undefined(name: str) -> None:
    """Also if the mean of the equal values is not exactly their value."""
    correlation, _ = CORRELATIONS[name]
    metric = correlation([0.1, 0.1, 0.1, 0.7], [1.0, 2.0, 3.0, 4.0])
    values = metric(np.array([[1.0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 5]]))
    assert np.isnan(values).tolist() == [True, False, True]


def test_infinite_values_have_ranks_and_no_pearson() -> None:
    x, y = [1.0, np.inf, 0.0], [2.0, 3.0, 1.0]
    assert point_estimate(weighted_spearman(x, y), 3) == 1
    assert point_estimate(weighted_kendall(x, y), 3) == 1
    with pytest.raises(DataError, match="hold infinite values"):
        weighted_pearson(x, y)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_wrong_arguments_are_refused(name: str) -> None:
    correlation, _ = CORRELATIONS[name]
    with pytest.raises(DataError, match=r"lengths differ \(2 and 1\)"):
        correlation([1, 2], [1])
    with pytest.raises(DataError, match=r"second: 1 of 2 values are NaN"):
        correlation([1, 2], [1, np.nan])

"""Means and weights over members by hand, and blocks that change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.statistics import kernel
from pipeline.statistics.kernel import (
    exp32,
    expr_log_weight,
    fused_statistics,
    log32,
    log_mean,
    member_mean,
)
from pipeline.store.statistics import POSTERIOR_STATISTICS

INF = np.inf


def test_weights_of_members_by_hand() -> None:
    prefix = np.array([np.log([0.5, 0.25, 0.25]), np.log([0.1, 0.1, 0.3]) - 5000])
    expected = [[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]
    np.testing.assert_allclose(np.exp(expr_log_weight(prefix)), expected, rtol=1e-12)


def test_a_prefix_that_members_exclude() -> None:
    prefix = np.array([[-INF, -7.0], [-INF, -INF], [-3.0, -INF]])
    np.testing.assert_allclose(np.exp(expr_log_weight(prefix)), [[0, 1], [0.5, 0.5], [1, 0]])


def test_means_of_probabilities_by_hand() -> None:
    logprob = np.log(np.array([[0.5, 0.1], [0.3, 0.7]]))
    np.testing.assert_allclose(np.exp(log_mean(logprob, -np.log(2))), [0.3, 0.5])
    weight = np.log(np.array([[0.25, 0.75], [0.5, 0.5]]))
    np.testing.assert_allclose(np.exp(log_mean(logprob, weight)), [0.2, 0.5])
    every = np.log(np.array([[[0.5, 0.5], [0.1, 0.9]]]))
    np.testing.assert_allclose(np.exp(log_mean(every, -np.log(2))), [[0.3, 0.7]])


def test_means_of_the_smallest_and_of_no_probability() -> None:
    assert log_mean(np.array([[-2000.0, -2000.0]]), -np.log(2)) == pytest.approx(-2000)
    assert log_mean(np.array([[-INF, 0.0]]), -np.log(2)) == pytest.approx(-np.log(2))
    assert log_mean(np.array([[-INF, -INF]]), -np.log(2)).tolist() == [-INF]


def test_plain_means_are_of_double_precision() -> None:
    half = np.array([[2048.0, 1.0, 1.0, 2.0]], dtype=np.float16)
    assert member_mean(half).tolist() == [513]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_by_hand(dtype: type) -> None:
    """Members (1/2, 1/2) and (1/4, 3/4), of which the prefix favours the second by 3 to 1."""
    logprob = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]])).astype(dtype)
    found = fused_statistics(logprob, np.log(np.array([[0.1, 0.3]])))
    prex, expr = np.array([0.375, 0.625]), np.array([0.3125, 0.6875])
    mean_log = np.log([0.125, 0.375]) / 2
    expected = {
        "entropy_prex": -prex @ np.log(prex),
        "entropy_expr": -expr @ np.log(expr),
        "cross_prex": -prex @ mean_log,
        "cross_expr": -expr @ mean_log,
        "cross_member_expr": -prex @ np.log(expr),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], [value], rtol=1e-6, err_msg=name)
    members = [[np.log(2), np.log(4) - 0.75 * np.log(3)]]
    np.testing.assert_allclose(found["entropy_member"], members, rtol=1e-6)


def test_what_one_member_excludes_costs_infinitely_much() -> None:
    with np.errstate(divide="ignore"):
        logprob = np.log(np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]]))
    found = fused_statistics(logprob, np.zeros((1, 2)))
    assert found["cross_prex"].tolist() == found["cross_expr"].tolist() == [INF]
    np.testing.assert_allclose(found["entropy_member"], [[0, np.log(2)]], atol=1e-15)
    quarter = 0.75 * np.log(4 / 3) + 0.25 * np.log(4)
    for name in ("entropy_prex", "entropy_expr", "cross_member_expr"):
        np.testing.assert_allclose(found[name], [quarter])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_blocks_of_rows_change_nothing(
    monkeypatch: pytest.MonkeyPatch, dtype: type[np.floating]
) -> None:
    logit = np.random.default_rng(0).normal(size=(7, 3, 5))
    logprob = (logit - np.log(np.exp(logit).sum(axis=2, keepdims=True))).astype(dtype)
    prefix = np.random.default_rng(1).normal(size=(7, 3))
    whole = fused_statistics(logprob, prefix)
    for block_values in (1, 30, 45):
        monkeypatch.setattr(kernel, "_BLOCK_VALUES", block_values)
        for name, values in fused_statistics(logprob, prefix).items():
            np.testing.assert_array_equal(values, whole[name], err_msg=name)


def test_the_statistics_of_one_member_are_one_number() -> None:
    logprob = np.log(np.array([[[0.25, 0.75]], [[0.5, 0.5]]]))
    found = fused_statistics(logprob, np.zeros((2, 1)))
    for name in POSTERIOR_STATISTICS:
        assert found[name].tolist() == found["entropy_member"][:, 0].tolist()
    assert found["cross_expr"][1] == pytest.approx(np.log(2))


def test_exponentials_of_single_precision() -> None:
    """To the last digits: the rest of the reduction loses as much as x itself was rounded by."""
    for x in np.linspace(-87, 87, 400, dtype=np.float32):
        tolerance = 2e-7 + 6e-8 * abs(float(x))
        assert float(exp32(x)) == pytest.approx(float(np.exp(float(x))), rel=tolerance)


def test_logarithms_of_single_precision() -> None:
    for x in np.exp(np.linspace(-87, 87, 400)).astype(np.float32):
        exact = float(np.log(float(x)))
        assert float(log32(x)) == pytest.approx(exact, rel=1.2e-7, abs=6e-8)
    for x in np.linspace(0.7, 1.5, 200, dtype=np.float32):
        assert float(log32(x)) == pytest.approx(float(np.log(float(x))), rel=0, abs=1e-7)

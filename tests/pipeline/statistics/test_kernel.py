"""Token statistics by hand; they do not depend on the block size."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.statistics import kernel
from pipeline.statistics.kernel import fused_statistics
from pipeline.store.statistics import POSTERIOR_STATISTICS

INF = np.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_by_hand(dtype: type) -> None:
    """Members are (1/2, 1/2) and (1/4, 3/4); the prefix favours the second by 3 to 1."""
    logprob = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]])).astype(dtype)
    statistics = fused_statistics(logprob, np.log(np.array([[0.1, 0.3]])))
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
        np.testing.assert_allclose(statistics[name], [value], rtol=1e-6, err_msg=name)
    members = [[np.log(2), np.log(4) - 0.75 * np.log(3)]]
    np.testing.assert_allclose(statistics["entropy_member"], members, rtol=1e-6)


def test_cross_entropy_is_infinite_where_one_member_excludes_a_token() -> None:
    with np.errstate(divide="ignore"):
        logprob = np.log(np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]]))
    statistics = fused_statistics(logprob, np.zeros((1, 2)))
    assert statistics["cross_prex"].tolist() == statistics["cross_expr"].tolist() == [INF]
    np.testing.assert_allclose(statistics["entropy_member"], [[0, np.log(2)]], atol=1e-15)
    quarter = 0.75 * np.log(4 / 3) + 0.25 * np.log(4)
    for name in ("entropy_prex", "entropy_expr", "cross_member_expr"):
        np.testing.assert_allclose(statistics[name], [quarter])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_block_size_does_not_change_statistics(
    monkeypatch: pytest.MonkeyPatch, dtype: type[np.floating]
) -> None:
    logit = np.random.default_rng(0).normal(size=(7, 3, 5))
    logprob = (logit - np.log(np.exp(logit).sum(axis=2, keepdims=True))).astype(dtype)
    prefix = np.random.default_rng(1).normal(size=(7, 3))
    expected = fused_statistics(logprob, prefix)
    for block_values in (1, 30, 45):
        monkeypatch.setattr(kernel, "_BLOCK_VALUES", block_values)
        for name, values in fused_statistics(logprob, prefix).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_all_entropies_of_one_member_are_equal() -> None:
    logprob = np.log(np.array([[[0.25, 0.75]], [[0.5, 0.5]]]))
    statistics = fused_statistics(logprob, np.zeros((2, 1)))
    for name in POSTERIOR_STATISTICS:
        assert statistics[name].tolist() == statistics["entropy_member"][:, 0].tolist()
    assert statistics["cross_expr"][1] == pytest.approx(np.log(2))

"""Weights, means and sums of log-probs over members, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.statistics.posterior import (
    expr_log_weight,
    log_mean,
    member_mean,
    prefix_logprob,
    sequence_logprob,
)

INF = np.inf


def test_weights_of_members_by_hand() -> None:
    prefix = np.array([np.log([0.5, 0.25, 0.25]), np.log([0.1, 0.1, 0.3]) - 5000])
    expected = [[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]
    np.testing.assert_allclose(np.exp(expr_log_weight(prefix)), expected, rtol=1e-12)


def test_weights_of_members_that_exclude_the_prefix() -> None:
    prefix = np.array([[-INF, -7.0], [-INF, -INF], [-3.0, -INF]])
    np.testing.assert_allclose(np.exp(expr_log_weight(prefix)), [[0, 1], [0.5, 0.5], [1, 0]])


def test_log_mean_by_hand() -> None:
    logprob = np.log(np.array([[0.5, 0.1], [0.3, 0.7]]))
    np.testing.assert_allclose(np.exp(log_mean(logprob, -np.log(2))), [0.3, 0.5])
    weight = np.log(np.array([[0.25, 0.75], [0.5, 0.5]]))
    np.testing.assert_allclose(np.exp(log_mean(logprob, weight)), [0.2, 0.5])
    every = np.log(np.array([[[0.5, 0.5], [0.1, 0.9]]]))
    np.testing.assert_allclose(np.exp(log_mean(every, -np.log(2))), [[0.3, 0.7]])


def test_log_mean_of_tiny_and_zero_probabilities() -> None:
    assert log_mean(np.array([[-2000.0, -2000.0]]), -np.log(2)) == pytest.approx(-2000)
    assert log_mean(np.array([[-INF, 0.0]]), -np.log(2)) == pytest.approx(-np.log(2))
    assert log_mean(np.array([[-INF, -INF]]), -np.log(2)).tolist() == [-INF]


def test_member_mean_is_computed_in_float64() -> None:
    half = np.array([[2048.0, 1.0, 1.0, 2.0]], dtype=np.float16)
    assert member_mean(half).tolist() == [513]


def test_prefix_logprob_starts_again_with_each_hypothesis() -> None:
    logprob = np.array([[-1.0, -INF], [-2.0, -3.0], [-4.0, -5.0], [-6.0, -7.0]])
    expected = [[0, 0], [-1, -INF], [0, 0], [-4, -5]]
    assert prefix_logprob(logprob, np.array([0, 2, 4])).tolist() == expected


def test_sequence_logprob_by_hand() -> None:
    """PrEx multiplies the means of tokens, ExPr averages the products of members."""
    logprob = np.log([[0.5, 0.25], [0.5, 0.75], [1.0, 0.5]])
    sums = sequence_logprob(logprob, np.array([0, 2, 3]))
    np.testing.assert_allclose(np.exp(sums.member), [[0.25, 0.1875], [1, 0.5]])
    np.testing.assert_allclose(np.exp(sums.prex), [0.375 * 0.625, 0.75])
    np.testing.assert_allclose(np.exp(sums.expr), [0.21875, 0.75])

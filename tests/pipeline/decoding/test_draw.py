from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.decoding.next_token import drawn_tokens, posteriors


def posterior(logits: Any, weight: Any) -> tuple[Any, Any]:
    n_member, n_row, n_vocab = logits.shape
    log_total = np.empty((n_row, n_member), np.float32)
    probability = np.empty((n_row, n_vocab), np.float32)
    posteriors(logits, weight, log_total, probability)
    return log_total, probability


def drawn(probability: Any, uniform: Any) -> list[int]:
    token = np.full(len(probability), -1)
    drawn_tokens(np.array(probability, np.float32), np.array(uniform), token)
    return list(token)


def test_the_posterior_is_the_weighted_sum_of_the_members() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(3, 4, 70)).astype(np.float32) * 5
    weight = random.dirichlet(np.ones(3), 4).astype(np.float32)
    weight[0] = [0, 1, 0]
    log_total, probability = posterior(logits, weight)
    exact = np.exp(logits.astype(np.float64))
    np.testing.assert_allclose(log_total, np.log(exact.sum(axis=2)).T, rtol=1e-5, atol=1e-5)
    expected = np.einsum("rm,mrk->rk", weight, exact / exact.sum(axis=2, keepdims=True))
    np.testing.assert_allclose(probability, expected, rtol=1e-4, atol=1e-30)


def test_what_is_impossible_has_probability_0() -> None:
    logits = np.zeros((2, 1, 6), np.float32)
    logits[:, 0, 1], logits[0, 0, 2], logits[:, 0, 3] = -np.inf, -np.inf, -200
    _, probability = posterior(logits, np.full((1, 2), 0.5, np.float32))
    assert np.flatnonzero(probability[0] == 0).tolist() == [1, 3]


def test_nan_shows_in_the_total_of_its_member_alone() -> None:
    logits = np.zeros((2, 2, 6), np.float32)
    logits[1, 0, 3] = np.nan
    log_total, _ = posterior(logits, np.full((2, 2), 0.5, np.float32))
    assert np.argwhere(np.isnan(log_total)).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("uniform", "token"),
    [(0.0, 1), (0.2499, 1), (0.25, 3), (0.7499, 3), (0.75, 4), (np.nextafter(1, 0), 4)],
)
def test_a_token_is_drawn_by_its_share_of_the_mass_and_never_one_without(
    uniform: float, token: int
) -> None:
    assert drawn([[0, 1, 0, 2, 1, 0]], [uniform]) == [token]


def test_the_mass_may_be_of_any_size_and_rounding_never_leaves_the_tokens() -> None:
    probability = np.random.default_rng(0).random((50, 1000)) * np.logspace(-30, 3, 50)[:, None]
    probability[:, 900:] = 0
    assert set(drawn(probability, np.full(50, np.nextafter(1, 0)))) <= set(range(890, 900))

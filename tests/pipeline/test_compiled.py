"""Compiled loops equal exact references, and numba's cached machine code is used safely."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.compiled import draw_tokens, exp32, log32, machine_code, posteriors, top_tokens
from pipeline.run.settings import ROOT


def top(logits: Any, weight: Any, factor: Any, n_best: int) -> tuple[Any, Any, Any]:
    n_member, n_row, _ = logits.shape
    log_total = np.empty((n_row, n_member), np.float32)
    best = np.empty((n_row, n_best), np.float32)
    token = np.empty((n_row, n_best), np.int64)
    top_tokens(logits, weight, factor, log_total, best, token)
    return log_total, best, token


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 63, 64, 65, 300]), st.integers(1, 12))
def test_top_tokens_agree_with_a_reference_in_float64(seed: int, n_vocab: int, n_best: int) -> None:
    random = np.random.default_rng(seed)
    n_member, n_row, n_best = 3, 4, min(n_best, n_vocab)
    # Rounded, so that many tokens are equally likely.
    logits = (random.normal(size=(n_member, n_row, n_vocab)) * 3).round().astype(np.float32)
    logits[0, 0, random.integers(n_vocab)] = 30
    weight = random.dirichlet(np.ones(n_member), n_row).astype(np.float32)
    factor = np.ones(n_vocab, np.float32)
    factor[random.integers(n_vocab)] = 0
    log_total, best, token = top(logits, weight, factor, n_best)

    exact = np.exp(logits.astype(np.float64))
    np.testing.assert_allclose(log_total, np.log(exact.sum(axis=2)).T, rtol=1e-5, atol=1e-5)
    share = exact / exact.sum(axis=2, keepdims=True)
    posterior = np.einsum("rm,mrk->rk", weight, share) * factor
    expected = -np.sort(-posterior, axis=1)[:, :n_best]
    np.testing.assert_allclose(best, expected, rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(np.take_along_axis(posterior, token, axis=1), expected, rtol=1e-4)
    assert all(len(set(row)) == n_best for row in token.tolist())


def test_ties_are_broken_by_the_lower_token_id() -> None:
    logits = np.zeros((2, 1, 200), np.float32)
    logits[:, :, 150:] = 1
    _, _, token = top(logits, np.full((1, 2), 0.5, np.float32), np.ones(200, np.float32), 4)
    assert token[0].tolist() == [150, 151, 152, 153]


@pytest.mark.parametrize("wrong", [np.nan, -np.nan, np.inf])
def test_nan_and_inf_logits_only_affect_their_member(wrong: float) -> None:
    logits = np.zeros((2, 3, 70), np.float32)
    logits[1, 2, 40] = wrong
    log_total, _, _ = top(logits, np.full((3, 2), 0.5, np.float32), np.ones(70, np.float32), 2)
    assert np.argwhere(np.isnan(log_total)).tolist() == [[2, 1]]


def test_an_impossible_token_comes_last() -> None:
    logits = np.zeros((1, 1, 8), np.float32)
    logits[0, 0, 3] = -np.inf
    log_total, best, token = top(logits, np.ones((1, 1), np.float32), np.ones(8, np.float32), 8)
    assert log_total[0, 0] == pytest.approx(np.log(7))
    assert token[0, -1] == 3
    assert best[0, -1] < np.exp(-80)


PRINTED = """
import numpy as np
from pipeline.compiled import top_tokens

random = np.random.default_rng(0)
logits = (4 * random.normal(size=(4, 50, 122))).astype(np.float32)
weight = random.dirichlet(np.ones(4), size=50).astype(np.float32)
log_total, best = np.zeros((50, 4), np.float32), np.zeros((50, 6), np.float32)
top_tokens(logits, weight, np.ones(122, np.float32), log_total, best, np.zeros((50, 6), int))
print(log_total.tobytes().hex(), best.tobytes().hex())
"""


@pytest.mark.slow
def test_compiled_and_cached_code_give_the_same_bytes(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PRINTED]
    compiled, cached = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert list(tmp_path.rglob("compiled.top_tokens*.nbc"))
    assert compiled == cached


def posterior(logits: Any, weight: Any) -> tuple[Any, Any]:
    n_member, n_row, n_vocab = logits.shape
    log_total = np.empty((n_row, n_member), np.float32)
    probability = np.empty((n_row, n_vocab), np.float32)
    posteriors(logits, weight, log_total, probability)
    return log_total, probability


def drawn(probability: Any, uniform: Any) -> list[int]:
    token = np.full(len(probability), -1)
    draw_tokens(np.array(probability, np.float32), np.array(uniform), token)
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


def test_impossible_tokens_have_probability_0() -> None:
    logits = np.zeros((2, 1, 6), np.float32)
    logits[:, 0, 1], logits[0, 0, 2], logits[:, 0, 3] = -np.inf, -np.inf, -200
    _, probability = posterior(logits, np.full((1, 2), 0.5, np.float32))
    assert np.flatnonzero(probability[0] == 0).tolist() == [1, 3]


def test_nan_only_affects_the_total_of_its_member() -> None:
    logits = np.zeros((2, 2, 6), np.float32)
    logits[1, 0, 3] = np.nan
    log_total, _ = posterior(logits, np.full((2, 2), 0.5, np.float32))
    assert np.argwhere(np.isnan(log_total)).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("uniform", "token"),
    [(0.0, 1), (0.2499, 1), (0.25, 3), (0.7499, 3), (0.75, 4), (np.nextafter(1, 0), 4)],
)
def test_tokens_are_drawn_by_inverting_the_distribution(uniform: float, token: int) -> None:
    assert drawn([[0, 1, 0, 2, 1, 0]], [uniform]) == [token]


def test_unnormalised_mass_and_rounding_never_draw_an_impossible_token() -> None:
    probability = np.random.default_rng(0).random((50, 1000)) * np.logspace(-30, 3, 50)[:, None]
    probability[:, 900:] = 0
    assert set(drawn(probability, np.full(50, np.nextafter(1, 0)))) <= set(range(890, 900))


def test_exp32_agrees_with_float64() -> None:
    """The range reduction loses as much as x itself was rounded by."""
    for x in np.linspace(-87, 87, 400, dtype=np.float32):
        tolerance = 2e-7 + 6e-8 * abs(float(x))
        assert float(exp32(x)) == pytest.approx(float(np.exp(float(x))), rel=tolerance)


def test_log32_agrees_with_float64() -> None:
    for x in np.exp(np.linspace(-87, 87, 400)).astype(np.float32):
        exact = float(np.log(float(x)))
        assert float(log32(x)) == pytest.approx(exact, rel=1.2e-7, abs=6e-8)
    for x in np.linspace(0.7, 1.5, 200, dtype=np.float32):
        assert float(log32(x)) == pytest.approx(float(np.log(float(x))), rel=0, abs=1e-7)


def test_compiled_functions_call_only_those_of_their_own_file() -> None:
    """numba does not notice that another file has changed."""
    for path in (ROOT / "pipeline").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "machine_code(" in text or "njit" in text:
            imported = re.findall(r"^from pipeline\.compiled import (.*)$", text, re.MULTILINE)
            assert imported in ([], ["machine_code"]), path


def test_code_is_compiled_even_if_no_folder_can_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", refuse)
    assert machine_code(lambda value: value + 1)(1) == 2

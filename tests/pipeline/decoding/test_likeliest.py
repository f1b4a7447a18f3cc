from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.decoding.next_token import likeliest_tokens
from pipeline.run.settings import ROOT


def likeliest(logits: Any, weight: Any, factor: Any, n_best: int) -> tuple[Any, Any, Any]:
    n_member, n_row, _ = logits.shape
    log_total = np.empty((n_row, n_member), np.float32)
    best = np.empty((n_row, n_best), np.float32)
    token = np.empty((n_row, n_best), np.int64)
    likeliest_tokens(logits, weight, factor, log_total, best, token)
    return log_total, best, token


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 63, 64, 65, 300]), st.integers(1, 12))
def test_the_same_as_step_by_step(seed: int, n_vocab: int, n_best: int) -> None:
    random = np.random.default_rng(seed)
    n_member, n_row, n_best = 3, 4, min(n_best, n_vocab)
    # Rounded, so that many tokens are equally likely.
    logits = (random.normal(size=(n_member, n_row, n_vocab)) * 3).round().astype(np.float32)
    logits[0, 0, random.integers(n_vocab)] = 30
    weight = random.dirichlet(np.ones(n_member), n_row).astype(np.float32)
    factor = np.ones(n_vocab, np.float32)
    factor[random.integers(n_vocab)] = 0
    log_total, best, token = likeliest(logits, weight, factor, n_best)

    exact = np.exp(logits.astype(np.float64))
    np.testing.assert_allclose(log_total, np.log(exact.sum(axis=2)).T, rtol=1e-5, atol=1e-5)
    share = exact / exact.sum(axis=2, keepdims=True)
    posterior = np.einsum("rm,mrk->rk", weight, share) * factor
    expected = -np.sort(-posterior, axis=1)[:, :n_best]
    np.testing.assert_allclose(best, expected, rtol=1e-4, atol=1e-30)
    np.testing.assert_allclose(np.take_along_axis(posterior, token, axis=1), expected, rtol=1e-4)
    assert all(len(set(row)) == n_best for row in token.tolist())


def test_of_equally_likely_tokens_the_lower_id_comes_first() -> None:
    logits = np.zeros((2, 1, 200), np.float32)
    logits[:, :, 150:] = 1
    _, _, token = likeliest(logits, np.full((1, 2), 0.5, np.float32), np.ones(200, np.float32), 4)
    assert token[0].tolist() == [150, 151, 152, 153]


@pytest.mark.parametrize("wrong", [np.nan, -np.nan, np.inf])
def test_logits_that_are_no_numbers_show_in_their_member_alone(wrong: float) -> None:
    logits = np.zeros((2, 3, 70), np.float32)
    logits[1, 2, 40] = wrong
    log_total, _, _ = likeliest(
        logits, np.full((3, 2), 0.5, np.float32), np.ones(70, np.float32), 2
    )
    assert np.argwhere(np.isnan(log_total)).tolist() == [[2, 1]]


def test_a_token_that_is_impossible_takes_no_part() -> None:
    logits = np.zeros((1, 1, 8), np.float32)
    logits[0, 0, 3] = -np.inf
    log_total, best, token = likeliest(
        logits, np.ones((1, 1), np.float32), np.ones(8, np.float32), 8
    )
    assert log_total[0, 0] == pytest.approx(np.log(7))
    assert token[0, -1] == 3
    assert best[0, -1] < np.exp(-80)


PRINTED = """
import numpy as np
from pipeline.decoding.next_token import likeliest_tokens

random = np.random.default_rng(0)
logits = (4 * random.normal(size=(4, 50, 122))).astype(np.float32)
weight = random.dirichlet(np.ones(4), size=50).astype(np.float32)
log_total, best = np.zeros((50, 4), np.float32), np.zeros((50, 6), np.float32)
likeliest_tokens(logits, weight, np.ones(122, np.float32), log_total, best, np.zeros((50, 6), int))
print(log_total.tobytes().hex(), best.tobytes().hex())
"""


def test_machine_code_gives_the_same_bytes_made_and_read_back(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PRINTED]
    made, read_back = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert list(tmp_path.rglob("next_token.likeliest_tokens*.nbc"))
    assert made == read_back

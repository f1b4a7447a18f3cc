"""Bounds from the k likeliest tokens hold, and are exact when the tail is empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.run.measure_rules import MeasureRules
from pipeline.statistics.posterior import expr_log_weight, prefix_logprob
from pipeline.store import Hypothesis, Store, TopK
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from pipeline.uncertainty.token import token_bounds, token_measures


def top_of(logprob: np.ndarray, k: int) -> TopK:
    order = np.argsort(-np.exp(logprob).mean(axis=1), axis=1, kind="stable")
    sorted_logprob = np.take_along_axis(logprob, order[:, np.newaxis], axis=2)
    with np.errstate(divide="ignore"):
        tail = np.log(np.exp(sorted_logprob[:, :, k:]).sum(axis=2))
    return TopK(order[:, :k], sorted_logprob[:, :, :k], tail)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 7), st.sampled_from([0.3, 5.0]))
def test_every_measure_lies_within_its_bounds(seed: int, n_member: int, k: int, scale: float):
    random = np.random.default_rng(seed)
    logit = scale * random.normal(size=(4, n_member, 7))
    logit[:, 0, 3:5] = -np.inf
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = random.integers(4, 7, 4)
    top = top_of(logprob, k)
    chosen = logprob[np.arange(4), :, token]
    log_weight = expr_log_weight(prefix_logprob(chosen, np.array([0, 4])))
    bounds = token_bounds(top.logprob, top.tail_logprob, chosen, log_weight, 7)
    values = token_measures(logprob, token)
    assert set(bounds) == {
        name
        for name, measure in TOKEN_MEASURES.items()
        if measure.topk_bounds is not None or measure.of_realised_token
    }
    for name, (low, high) in bounds.items():
        assert not np.isnan(low).any(), name
        assert not np.isnan(high).any(), name
        assert np.all(values[name] >= low - 1e-9), name
        assert np.all(values[name] <= high + 1e-9), name
        if k == 7:
            np.testing.assert_allclose(low, high, atol=1e-9, err_msg=name)


def test_entropy_bounds_by_hand():
    """Two tokens have 0.3 and 0.2; three unlisted ones share 0.5, each at most 0.2."""
    top, tail = np.log([[[0.3, 0.2]]]), np.log([[0.5]])
    bounds = token_bounds(top, tail, np.log([[0.3]]), np.zeros((1, 1)), 5)
    coarse = -sum(p * np.log(p) for p in (0.3, 0.2, 0.5))
    for name in ("data", "prex_entropy", "expr_entropy"):
        low, high = bounds[name]
        assert low == pytest.approx(coarse + 0.5 * np.log(0.5 / 0.2)), name
        assert high == pytest.approx(coarse + 0.5 * np.log(3)), name
    for name in ("prex_mi", "prex_rmi", "expr_mi_w", "expr_epkl_w", "expr_mi_kl"):
        assert bounds[name] == (pytest.approx(0), pytest.approx(0)), name
    score = -np.log(0.3)
    assert bounds["prex_score"] == (pytest.approx(score), pytest.approx(score))


def test_knowledge_bounds_by_hand():
    """Members agree on the listed token and may differ on two others, which share 1/4."""
    top, tail = np.log([[[0.75], [0.75]]]), np.log([[0.25, 0.25]])
    uniform = np.full((1, 2), np.log(0.5))
    bounds = token_bounds(top, tail, top[:, :, 0], uniform, 3)
    for name in ("prex_mi", "expr_mi_w", "expr_mi_kl"):
        low, high = bounds[name]
        assert low == pytest.approx(0, abs=1e-12), name
        assert high == pytest.approx(0.25 * np.log(2)), name
    for name in ("prex_rmi", "prex_epkl", "expr_rmi", "expr_epkl", "expr_epkl_w"):
        assert bounds[name][1].tolist() == [np.inf], name
    entropy = 0.75 * np.log(4 / 3) + 0.25 * np.log(4)
    low, high = bounds["expr_mi"]
    assert low == pytest.approx(-0.25 * np.log(2))
    assert high == pytest.approx(0.25 * np.log(2))
    assert bounds["data"][0] == pytest.approx(entropy)


@pytest.mark.parametrize("eos", ["include", "zero"])
@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_checks_use_the_bounds(
    store_of: Callable[..., Store],
    random_hypothesis: Callable[..., Hypothesis],
    tmp_path: Path,
    shift: float,
    eos: str,
):
    hypothesis: Any = random_hypothesis(0, vocab_size=30, full="float64")
    statistics = replace(
        hypothesis.statistics, entropy_prex=hypothesis.statistics.entropy_prex + shift
    )
    hypothesis = replace(
        hypothesis,
        statistics=statistics,
        topk=top_of(hypothesis.full_logprob, 25),
        full_logprob=None,
    )
    store = store_of([[hypothesis]], n_member=3, vocab_size=30)
    report = write_measures(store, tmp_path, Grid([1], [1], [True], MeasureRules(eos=eos)))
    assert report["recomputed"]["from"] == "topk"
    assert (report["recomputed"]["tokens_off"] > 0) == (shift > 0)

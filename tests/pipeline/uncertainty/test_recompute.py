"""Stored statistics are compared with the stored distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.store import Hypothesis, Store, TopK
from pipeline.uncertainty import checks as recompute
from pipeline.uncertainty.blocks import token_blocks
from pipeline.uncertainty.checks import recomputed_differences
from pipeline.uncertainty.token import token_statistics

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
SIZE = {"n_member": 3, "vocab_size": 8}


def differences(store: Store) -> dict[str, tuple[np.ndarray, float]]:
    result: dict[str, Any] = {}
    for block in token_blocks(store):
        for name, difference, tolerance in recomputed_differences(store, block):
            earlier = result.get(name, (np.empty((0, *difference.shape[1:])), tolerance))[0]
            result[name] = np.concatenate([earlier, difference]), tolerance
    return result


def listed(hypothesis: Hypothesis, k: int) -> Hypothesis:
    """Return a hypothesis with the k likeliest tokens instead of all tokens."""
    assert hypothesis.full_logprob is not None
    full = np.asarray(hypothesis.full_logprob)
    order = np.argsort(-np.exp(full).mean(axis=1), axis=1)[:, np.newaxis]
    best = np.take_along_axis(full, order, axis=2)
    topk = TopK(order[:, 0, :k], best[:, :, :k], np.log(np.exp(best[:, :, k:]).sum(axis=2)))
    return replace(hypothesis, topk=topk, full_logprob=None)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float16", 1e-2)])
@pytest.mark.parametrize("slice_bytes", [1, 600, 2**25])
def test_differences_of_statistics_are_relative_above_1_nat(
    store_of: StoreOf,
    random_hypothesis: Make,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    tolerance: float,
    slice_bytes: int,
) -> None:
    """Below 1 nat differences are absolute. -inf equals -inf."""
    monkeypatch.setattr(recompute, "_SLICE_BYTES", slice_bytes)
    base = random_hypothesis(0, n_token=5, full=dtype)
    assert base.full_logprob is not None
    base.full_logprob[4, 1, base.token_id[4]] = -np.inf
    base.full_logprob[4, 1] -= np.log(np.exp(base.full_logprob[4, 1].astype(float)).sum())
    statistics = token_statistics(base.full_logprob, base.token_id)
    entropy, logprob = statistics.entropy_member.copy(), statistics.logprob.copy()
    assert entropy[3, 2] > 1
    entropy[3, 2] *= 0.75
    small = int(np.argmin(abs(logprob[:, 0])))
    logprob[small, 0] -= 0.25
    changed = replace(statistics, entropy_member=entropy, logprob=logprob)
    compared = differences(
        store_of([[random_hypothesis(9, full=dtype)], [replace(base, statistics=changed)]], **SIZE)
    )
    assert {allowed for _, allowed in compared.values()} == {tolerance}
    before = 4
    of_entropy, of_logprob = compared["entropy_member"][0][before:], compared["logprob"][0][before:]
    assert of_entropy.shape == of_logprob.shape == (5, 3)
    assert of_entropy[3, 2] == pytest.approx(0.25, abs=tolerance)
    assert np.sum(of_entropy > tolerance) == 1
    scale = max(1.0, abs(float(statistics.logprob[small, 0])))
    assert of_logprob[small, 0] == pytest.approx(0.25 / scale, abs=tolerance)
    assert np.sum(of_logprob > tolerance) == 1
    assert of_logprob[4, 1] == 0


@pytest.mark.parametrize("slice_bytes", [1, 300, 2**25])
def test_differences_from_the_bounds_of_the_likeliest_tokens(
    store_of: StoreOf,
    random_hypothesis: Make,
    monkeypatch: pytest.MonkeyPatch,
    slice_bytes: int,
) -> None:
    monkeypatch.setattr(recompute, "_SLICE_BYTES", slice_bytes)
    base = random_hypothesis(4, n_token=5, full="float32")
    assert base.full_logprob is not None
    rank = np.argsort(-np.exp(np.asarray(base.full_logprob)).mean(axis=1), axis=1)
    # The second token is the likeliest one, the fourth the least likely one.
    token = np.array(base.token_id)
    token[1], token[3] = rank[1, 0], rank[3, -1]
    base = replace(base, token_id=token, statistics=token_statistics(base.full_logprob, token))
    sound = differences(store_of([[listed(base, 3)]], **SIZE))
    assert {allowed for _, allowed in sound.values()} == {1e-4}
    assert max(difference.max() for difference, _ in sound.values()) < 1e-6
    logprob = base.statistics.logprob.copy()
    above = float(np.asarray(listed(base, 3).topk.tail_logprob)[3, 0])  # type: ignore[union-attr]
    logprob[1, 1] += 0.25
    logprob[3, 0] = above + 0.25
    changed = replace(base, statistics=replace(base.statistics, logprob=logprob))
    off = differences(store_of([[listed(changed, 3)]], **SIZE))["logprob"][0]
    scale = max(1.0, abs(float(base.statistics.logprob[1, 1])))
    assert off[1, 1] == pytest.approx(0.25 / scale, abs=1e-5)
    assert off[3, 0] == pytest.approx(0.25 / max(1.0, abs(above)), abs=1e-5)
    assert np.sum(off > 1e-6) == 2


def test_a_store_of_statistics_has_nothing_to_compare(
    store_of: StoreOf, random_hypothesis: Make
) -> None:
    assert differences(store_of([[random_hypothesis(0)]], **SIZE)) == {}

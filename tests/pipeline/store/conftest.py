from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.store import Hypothesis, StoreWriter, TokenStatistics, TopK

N_MEMBER, VOCAB_SIZE = 3, 11
ATTRIBUTES: dict[str, Any] = {
    "task": "toy",
    "test_set": "toy",
    "ensemble": "toy",
    "regime": "beam",
    "combination": "prex",
    "beam": 4,
    "length_penalty": 1.0,
    "members": ["a", "b", "c"],
    "vocab_size": VOCAB_SIZE,
}


@pytest.fixture
def attributes() -> dict[str, Any]:
    return dict(ATTRIBUTES)


@pytest.fixture
def make_hypothesis() -> Callable[..., Hypothesis]:
    """Return a function that makes a hypothesis of random but valid numbers."""

    def make(n_token: int, seed: int = 0, dump: str = "statistics") -> Hypothesis:
        random = np.random.default_rng(seed)
        logit = random.normal(size=(n_token, N_MEMBER, VOCAB_SIZE))
        logprob = (logit - np.log(np.exp(logit).sum(-1, keepdims=True))).astype(np.float32)
        token = random.integers(0, VOCAB_SIZE, n_token)
        statistics = TokenStatistics(
            logprob[np.arange(n_token), :, token],
            -(np.exp(logprob) * logprob).sum(-1),
            *[random.random(n_token) for _ in range(5)],
        )
        tail = np.log(np.exp(logprob[:, :, 2:]).sum(-1))
        topk = TopK(np.tile(np.arange(2), (n_token, 1)), logprob[:, :, :2], tail)
        return Hypothesis(
            token,
            f"text {seed}",
            float(-seed),
            True,
            statistics,
            full_logprob=logprob if dump == "full" else None,
            topk=topk if dump == "topk" else None,
        )

    return make


@pytest.fixture
def write_store(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Callable[..., Hypothesis]
) -> Callable[..., Path]:
    """Return a function that writes a store of sentences with 0, 1, 2, 0, ... hypotheses."""

    def write(name: str = "store.h5", n_sentence: int = 7, dump: str = "statistics") -> Path:
        with StoreWriter(tmp_path / name, **attributes) as store:
            for sentence in range(n_sentence):
                hypotheses = [
                    make_hypothesis(1 + (sentence + rank) % 5, 10 * sentence + rank, dump)
                    for rank in range(sentence % 3)
                ]
                names = {"group": f"page {sentence // 3}", "original": f"toy:{sentence}"}
                texts = (f"source {sentence}", f"ref {sentence}")
                store.add_sentence(sentence, *texts, hypotheses, **names)
        return tmp_path / name

    return write

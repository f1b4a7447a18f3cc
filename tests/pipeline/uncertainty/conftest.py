"""A toy autoregressive ensemble whose sequences can be enumerated, and random stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.store import Hypothesis, Store, StoreWriter, open_own_store
from pipeline.uncertainty.token import token_statistics

Float64 = NDArray[np.float64]
EOS = 0


@dataclass(frozen=True)
class Toy:
    """All sequences over a small vocabulary, with their distributions [token, member, vocab]."""

    sequences: list[tuple[int, ...]]
    distributions: list[Float64]
    log_member: Float64  # [sequence, member]

    @property
    def n_member(self) -> int:
        return self.log_member.shape[1]

    @property
    def log_expr(self) -> Float64:
        return np.log(np.exp(self.log_member).mean(axis=1))

    @property
    def log_prex(self) -> Float64:
        return np.array(
            [
                sum(
                    np.log(np.exp(distribution[position, :, token]).mean())
                    for position, token in enumerate(tokens)
                )
                for tokens, distribution in zip(self.sequences, self.distributions, strict=True)
            ]
        )

    def log_posterior(self, name: str) -> Float64:
        return self.log_expr if name == "expr" else self.log_prex

    def hypothesis(self, index: int, member: int = -1) -> Hypothesis:
        token = np.array(self.sequences[index])
        logprob = self.distributions[index]
        statistics = token_statistics(logprob, token)
        return Hypothesis(
            token, f"text {index}", 0.0, True, statistics, member=member, full_logprob=logprob
        )


@pytest.fixture(scope="session")
def toy() -> Toy:
    """Return 3 members with a vocabulary of 3; EOS is certain after 3 tokens."""
    random = np.random.default_rng(5)
    n_member, vocab_size, longest = 3, 3, 4
    table: dict[tuple[int, ...], Float64] = {}
    sequences: list[tuple[int, ...]] = []
    for length in range(longest):
        for prefix in product(range(1, vocab_size), repeat=length):
            logit = 1.5 * random.normal(size=(n_member, vocab_size))
            if length == longest - 1:
                logit[:, 1:] = -np.inf
            table[prefix] = logit - np.log(np.exp(logit).sum(axis=1, keepdims=True))
            sequences.append((*prefix, EOS))
    distributions = [
        np.stack([table[tokens[:position]] for position in range(len(tokens))])
        for tokens in sequences
    ]
    log_member = np.array(
        [
            sum(distribution[position, :, token] for position, token in enumerate(tokens))
            for tokens, distribution in zip(sequences, distributions, strict=True)
        ]
    )
    return Toy(sequences, distributions, log_member)


@pytest.fixture
def store_of(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Return a function that writes sentences of hypotheses to a store and opens it."""
    opened: list[Store] = []

    def write(sentences: list[list[Hypothesis]], **attributes: Any) -> Store:
        path = tmp_path / f"{len(opened)}.h5"
        everything = {"regime": "beam", "combination": "prex"} | attributes
        with StoreWriter(path, **everything) as store:
            for sentence, hypotheses in enumerate(sentences):
                store.add_sentence(sentence, f"source {sentence}", "reference", hypotheses)
        opened.append(open_own_store(path))
        return opened[-1]

    yield write
    for store in opened:
        store.close()


def random_logprob(
    random: np.random.Generator, n_token: int, n_member: int, vocab_size: int, scale: float = 1.0
) -> Float64:
    logit = scale * random.normal(size=(n_token, n_member, vocab_size))
    return logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))


@pytest.fixture
def random_hypothesis() -> Callable[..., Hypothesis]:
    """Return a function that makes a random hypothesis with the PrEx score of length penalty 1."""

    def make(
        seed: int, n_token: int = 4, n_member: int = 3, vocab_size: int = 8, full: str | None = None
    ) -> Hypothesis:
        random = np.random.default_rng(seed)
        logprob = random_logprob(random, n_token, n_member, vocab_size)
        token = random.integers(0, vocab_size, n_token)
        statistics = token_statistics(logprob, token)
        score = float(np.log(np.exp(statistics.logprob).mean(axis=1)).mean())
        kept = None if full is None else logprob.astype(full)
        return Hypothesis(token, f"text {seed}", score, True, statistics, full_logprob=kept)

    return make

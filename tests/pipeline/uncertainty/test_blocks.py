"""Blocks of hypotheses, subsets of members, and EOS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ConfigError
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty import blocks
from pipeline.uncertainty.blocks import token_blocks

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
LENGTHS = [3, 2, 4, 6, 1]
SIZE = {"n_member": 2, "vocab_size": 16}


@pytest.fixture
def store(store_of: StoreOf, random_hypothesis: Make) -> Store:
    hypotheses = [
        random_hypothesis(seed, length, n_member=2, vocab_size=16, full="float32")
        for seed, length in enumerate(LENGTHS)
    ]
    hypotheses[1] = replace(hypotheses[1], finished=False)
    return store_of([hypotheses[:2], [], hypotheses[2:]], **SIZE)


def ranges(store: Store, members: list[int] | None = None) -> list[tuple[int, int]]:
    return [(block.first, block.last) for block in token_blocks(store, members)]


def test_a_block_holds_complete_hypotheses(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each token and member takes 8 numbers of 8 bytes; a longer hypothesis is its own block."""
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 5 * 8 * 8 * 2)
    assert ranges(store) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 5 * 8 * 8 * 2 - 1)
    assert ranges(store) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 16 * 8 * 8 * 2)
    assert ranges(store) == [(0, 5)]


def test_a_block_of_distributions_counts_the_vocabulary(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 5 * 8 * 16 * 2)
    assert ranges(store, [1, 0]) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert ranges(store) == [(0, 3), (3, 5)]


@pytest.mark.parametrize("members", [None, [1, 0], [1]])
@pytest.mark.parametrize("eos", ["include", "zero"])
def test_block_size_does_not_change_measures(
    store: Store, monkeypatch: pytest.MonkeyPatch, members: list[int] | None, eos: str
) -> None:
    (expected,) = token_blocks(store, members, eos)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 1)
    single = list(token_blocks(store, members, eos))
    assert [block.token_offset.tolist() for block in single] == [[0, length] for length in LENGTHS]
    assert expected.token_offset.tolist() == [0, *np.cumsum(LENGTHS)]
    np.testing.assert_array_equal(
        np.concatenate([block.token_id for block in single]), expected.token_id
    )
    for name, values in expected.measures.items():
        together = np.concatenate([block.measures[name] for block in single])
        np.testing.assert_allclose(together, values, rtol=1e-12, err_msg=name)


def test_eos_of_finished_hypotheses_can_be_set_to_zero(store: Store) -> None:
    ends = np.cumsum(LENGTHS) - 1
    (with_end,), (without,) = token_blocks(store), token_blocks(store, eos="zero")
    for name, values in without.measures.items():
        expected = with_end.measures[name].copy()
        if not name.endswith(("score", "pmi")):
            # The second hypothesis is unfinished, so its last token is not EOS.
            expected[ends[[0, 2, 3, 4]]] = 0
        np.testing.assert_array_equal(values, expected, err_msg=name)


def test_a_subset_without_distributions_has_measures_of_realised_tokens_only(
    store_of: StoreOf, random_hypothesis: Make
) -> None:
    hypothesis = random_hypothesis(0, 4)
    store = store_of([[hypothesis]], n_member=3, vocab_size=8)
    (block,) = token_blocks(store, [2, 0])
    assert set(block.measures) == {"prex_score", "prex_pmi", "expr_score", "expr_pmi"}
    pair = np.exp(hypothesis.statistics.logprob[:, [2, 0]])
    np.testing.assert_allclose(block.measures["prex_score"], -np.log(pair.mean(axis=1)), rtol=1e-5)


@pytest.mark.parametrize("members", [[], [0, 0], [2], [-1], [0, 1, 2]])
def test_members_must_be_distinct_members_of_the_store(store: Store, members: list[int]) -> None:
    with pytest.raises(ConfigError, match=r"distinct indices in \[0, 2\) of .* \(got \["):
        next(token_blocks(store, members))

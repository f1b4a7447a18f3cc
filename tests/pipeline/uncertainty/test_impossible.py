"""Rounding beyond the range of a measure is accepted; larger deviations are rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.blocks import TokenBlock, token_blocks
from pipeline.uncertainty.checks import reject_out_of_range
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES, Range


@pytest.fixture
def given(
    store_of: Callable[..., Store], random_hypothesis: Callable[..., Hypothesis]
) -> tuple[Store, TokenBlock]:
    store = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    return store, next(token_blocks(store))


def with_value(block: TokenBlock, name: str, value: float) -> TokenBlock:
    values = np.zeros_like(block.measures[name])
    values[1] = value
    return replace(block, measures={name: values})


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_a_measure_below_zero_by_rounding_is_accepted(
    given: tuple[Store, TokenBlock], name: str
) -> None:
    store, block = given
    reject_out_of_range(store, with_value(block, name, -0.0199))
    if TOKEN_MEASURES[name].range is Range.REAL:
        reject_out_of_range(store, with_value(block, name, -0.7))
    else:
        with pytest.raises(StoreError, match=f"token 1: {name} must be at least 0 .got -0.0201"):
            reject_out_of_range(store, with_value(block, name, -0.0201))


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_an_entropy_above_ln_vocab_by_rounding_is_accepted(
    given: tuple[Store, TokenBlock], name: str
) -> None:
    store, block = given
    highest = float(np.log(8))
    reject_out_of_range(store, with_value(block, name, highest + 0.0199))
    if TOKEN_MEASURES[name].range is Range.ENTROPY:
        with pytest.raises(StoreError, match=rf"{name} must be at most ln\(vocab_size=8\) "):
            reject_out_of_range(store, with_value(block, name, highest + 0.0201))
    else:
        reject_out_of_range(store, with_value(block, name, 50.0))


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_nan_is_rejected_for_every_measure(given: tuple[Store, TokenBlock], name: str) -> None:
    store, block = given
    with pytest.raises(StoreError, match=f"token 1: {name} must be a number .got nan"):
        reject_out_of_range(store, with_value(block, name, np.nan))

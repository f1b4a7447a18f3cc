"""Where the line stands between a rounded measure and one that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.blocks import Block, measured_blocks
from pipeline.uncertainty.checks import refuse_impossible
from pipeline.uncertainty.token import TOKEN_MEASURES


@pytest.fixture
def given(
    store_of: Callable[..., Store], random_hypothesis: Callable[..., Hypothesis]
) -> tuple[Store, Block]:
    store = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    return store, next(measured_blocks(store))


def with_value(block: Block, name: str, value: float) -> Block:
    values = np.zeros_like(block.measures[name])
    values[1] = value
    return replace(block, measures={name: values})


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_a_measure_may_be_below_zero_by_its_rounding(given: tuple[Store, Block], name: str) -> None:
    store, block = given
    refuse_impossible(store, with_value(block, name, -0.0199))
    if name in ("expr_mi", "expr_epkl", "expr_pmi"):
        refuse_impossible(store, with_value(block, name, -0.7))
    else:
        with pytest.raises(StoreError, match=f"token 1: {name} must be >= 0, got -0.0201"):
            refuse_impossible(store, with_value(block, name, -0.0201))


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_an_entropy_may_be_above_that_of_chance_by_its_rounding(
    given: tuple[Store, Block], name: str
) -> None:
    store, block = given
    highest = float(np.log(8))
    refuse_impossible(store, with_value(block, name, highest + 0.0199))
    if name in ("data", "prex_entropy", "expr_entropy"):
        with pytest.raises(StoreError, match=rf"token 1: {name} must be <= ln\(vocab_size=8\), "):
            refuse_impossible(store, with_value(block, name, highest + 0.0201))
    else:
        refuse_impossible(store, with_value(block, name, 50.0))


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_nan_is_refused_of_every_measure(given: tuple[Store, Block], name: str) -> None:
    store, block = given
    with pytest.raises(StoreError, match=f"token 1: {name} must be a number, got nan"):
        refuse_impossible(store, with_value(block, name, np.nan))

"""Measures that no distributions can have: the stage stops and says whose they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store import Store
from pipeline.store.place import place_of
from pipeline.uncertainty.blocks import Block
from pipeline.uncertainty.kernel import Float64
from pipeline.uncertainty.token import TOKEN_MEASURES

MAY_BE_NEGATIVE = tuple(name for name, one in TOKEN_MEASURES.items() if one.may_be_negative)
# A sound store may be this far off: two of its numbers, each rounded in half precision. Of float32
# `StoreChecks` tells much smaller faults, which stop nothing.
_HALF_PRECISION_NATS = 2e-2


def refuse_impossible(store: Store, block: Block) -> None:
    """Raise StoreError for a token measure that is NaN, below 0, or an entropy above ln of vocab.

    It names file, task, test set, sentence, hypothesis, token and measure. Those of
    `MAY_BE_NEGATIVE` pass below 0.
    """
    highest = float(np.log(store.vocab_size)) + _HALF_PRECISION_NATS
    for name, values in block.measures.items():
        _refuse(store, block, name, np.isnan(values), "a number")
        if name not in MAY_BE_NEGATIVE:
            _refuse(store, block, name, values < -_HALF_PRECISION_NATS, ">= 0")
        if name == "data" or name.endswith("_entropy"):
            rule = f"<= ln(vocab_size={store.vocab_size})"
            _refuse(store, block, name, values > highest, rule)


def refuse_nan(store: Store, name: str, values: Float64) -> None:
    """Raise StoreError, naming file, task, set and sentence, for a measure [sentence] that is NaN.

    A sentence without a hypothesis has none and is passed over.
    """
    broken = np.isnan(values) & (np.diff(store.hypothesis_offset) > 0)
    if broken.any():
        place = place_of(store, "/sentence/id", [int(broken.argmax())])
        raise StoreError(f"{store.path}: {place}: {name} must be a number, got nan")


def refuse_undrawable(store: Store, logprob: Float64) -> None:
    """Raise StoreError, naming the hypothesis, where its ln P by the member that drew it is -inf.

    logprob [hypothesis].
    """
    broken = np.isneginf(logprob)
    if broken.any():
        place = place_of(store, "/hypothesis/member", [int(broken.argmax())])
        raise StoreError(
            f"{store.path}: {place}: the member that drew it must give it a probability above 0, "
            f"got 0"
        )


def _refuse(store: Store, block: Block, name: str, broken: NDArray[np.bool_], rule: str) -> None:
    if broken.any():
        token = int(broken.argmax())
        row = int(store.token_offset[block.first]) + token
        place = place_of(store, "/token/id", [row])
        value = float(block.measures[name][token])
        raise StoreError(f"{store.path}: {place}: {name} must be {rule}, got {value:.6g}")

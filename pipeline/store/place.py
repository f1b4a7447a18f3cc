"""Where a value of a store stands, in words that a person can follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.store.schema import DATASETS

if TYPE_CHECKING:
    from pipeline.store.reader import Store


def place_of(store: Store, name: str, index: Sequence[int]) -> str:
    """Task, test set, sentence, hypothesis, token and member of dataset `name` at `index`.

    index: one number an axis, or the first of them. Hypotheses and tokens count from 0 within
    their sentence and hypothesis; what does not apply is left out.
    """
    axes = DATASETS[name].axes
    words = [str(store.attributes[key]) for key in ("task", "test_set") if key in store.attributes]
    row = index[0]
    if axes[0] == "token":
        hypothesis = int(np.searchsorted(store.token_offset, row, side="right")) - 1
        token = f"token {row - store.token_offset[hypothesis]}"
        words += [*_hypothesis(store, hypothesis), token]
    elif axes[0] == "hypothesis":
        words += _hypothesis(store, row)
    else:
        words.append(f"sentence {row}")
    named = dict(zip(axes, index, strict=False))
    if "member" in named:
        words.append(f"member {store.members[named['member']]}")
    return ", ".join(words)


def _hypothesis(store: Store, row: int) -> list[str]:
    """A sentence may have no hypothesis: of those that begin at one row, the last has it."""
    sentence = int(np.searchsorted(store.hypothesis_offset, row, side="right")) - 1
    return [f"sentence {sentence}", f"hypothesis {row - store.hypothesis_offset[sentence]}"]

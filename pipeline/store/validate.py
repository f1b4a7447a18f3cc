"""Checking every value of a decode store against the rules of its schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.reader import Store, open_file, open_store, structure_faults
from pipeline.store.schema import DATASETS, TEXT, Flag, lowest_member

# Rounding of a float32 or float16 softmax leaves log-probabilities a little above 0.
_ROUNDING_NATS = 1e-2
_BLOCK_BYTES = 2**26


def validate(path: str | Path) -> list[str]:
    """Sentences on what is wrong with a store, each naming file, dataset, row and rule; [] if fine.

    Memory stays bounded whatever the size of the store. A file that cannot be read is one sentence.
    """
    path = Path(path)
    try:
        with open_file(path) as file:
            faults = structure_faults(file)
        if not faults:
            with open_store(path) as store:
                faults = list(_value_faults(store))
    except StoreError as error:
        return [str(error)]
    return [f"{path}: {fault}" for fault in faults]


def _value_faults(store: Store) -> Iterator[str]:
    yield from _fault(
        "/sentence/id",
        store.read("/sentence/id") != np.arange(store.n_sentence),
        "must be the position in the test set, counting from 0",
    )
    yield from _fault(
        "/hypothesis/token_offset",
        np.diff(store.token_offset) == 0,
        "must give each hypothesis at least one token",
    )
    no_hypothesis = np.diff(store.hypothesis_offset) == 0
    flagged = (store.flag & Flag.NO_HYPOTHESIS).astype(bool)
    yield from _fault(
        "/sentence/flag",
        no_hypothesis != flagged,
        f"must have bit {Flag.NO_HYPOTHESIS.value} exactly where there is no hypothesis",
    )
    member = store.read("/hypothesis/member")
    lowest = lowest_member(store.combination)
    yield from _fault(
        "/hypothesis/member",
        (member < lowest) | (member >= store.n_member),
        f"must lie in [{lowest}, {store.n_member})",
    )
    for name, dataset in DATASETS.items():
        if dataset.axes[0] not in ("token", "hypothesis") or dataset.dtype == TEXT:
            continue
        if dataset.dump in ("statistics", store.dump):
            yield from _first_fault(store, name)


def _first_fault(store: Store, name: str) -> list[str]:
    """The first row of a dataset that breaks a rule on its values."""
    sizes = {"member": store.n_member, "vocab": store.vocab_size, "k": store.vocab_size}
    row_bytes = 4 * int(np.prod([sizes.get(axis, 1) for axis in DATASETS[name].axes], dtype=int))
    rows = store.n_token if name.startswith("/token/") else store.n_hypothesis
    step = max(1, _BLOCK_BYTES // row_bytes)
    for start in range(0, rows, step):
        values = store.read(name, start, start + step)
        for broken, rule in _rules(store, name, values):
            fault = _fault(name, broken, rule, start)
            if fault:
                return fault
    return []


def _rules(
    store: Store, name: str, values: NDArray[Any]
) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Rows that break a rule, and the rule."""
    if values.dtype.kind == "f":
        yield _any(np.isnan(values)), "must not be NaN"
    if name.endswith("logprob"):
        yield _any(values > _ROUNDING_NATS), "must be a log-probability, <= 0"
    elif "/entropy_" in name:
        wrong = (values < -_ROUNDING_NATS) | np.isinf(values)
        yield _any(wrong), "must be an entropy, finite and >= 0"
    elif "/cross_" in name:
        yield _any(values < -_ROUNDING_NATS), "must be a cross entropy, >= 0"
    elif name in ("/token/id", "/token/topk_id"):
        wrong = (values < 0) | (values >= store.vocab_size)
        yield _any(wrong), f"must lie in [0, vocab_size={store.vocab_size})"


def _any(broken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows have a broken value."""
    rows: NDArray[np.bool_] = broken.reshape(len(broken), -1).max(axis=1, initial=False)
    return rows


def _fault(name: str, broken: NDArray[np.bool_], rule: str, start: int = 0) -> list[str]:
    rows = np.flatnonzero(broken)
    return [f"dataset {name}, row {start + int(rows[0])}, {rule}"] if len(rows) else []

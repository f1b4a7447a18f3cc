"""Checking a decode store that nobody vouches for."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.child import in_child
from pipeline.store.reader import Store, open_file, opening_faults, place_of
from pipeline.store.schema import DATASETS, TEXT, Flag, value_range

_BLOCK_BYTES = 2**26


def store_faults(path: Path) -> list[str]:
    """What `validate` says, found in this process, which HDF5 may crash on a damaged file."""
    faults = opening_faults(path)
    if faults:
        return faults
    try:
        with Store(path, open_file(path)) as store:
            return [*_sentence_faults(store), *_all_value_faults(store)]
    except StoreError as error:
        return [str(error)]


def _sentence_faults(store: Store) -> Iterator[str]:
    yield from _fault(
        store,
        "/sentence/id",
        store.read("/sentence/id") != np.arange(store.n_sentence),
        "must be the position in the test set, counting from 0",
    )
    empty = np.diff(store.hypothesis_offset) == 0
    yield from _fault(
        store,
        "/sentence/flag",
        empty & (store.flag == 0),
        f"must not be 0 (fine) where there is no hypothesis, but have bit {Flag.NO_HYPOTHESIS}",
    )
    yield from _fault(
        store,
        "/sentence/flag",
        ~empty & (store.flag & Flag.NO_HYPOTHESIS).astype(bool),
        f"must have bit {Flag.NO_HYPOTHESIS} only where there is no hypothesis",
    )


def _all_value_faults(store: Store) -> Iterator[str]:
    for name, dataset in DATASETS.items():
        if store.has(name):
            try:
                if dataset.dtype == TEXT:
                    _read_texts(store, name)
                elif dataset.axes[0] in ("token", "hypothesis"):
                    yield from _first_fault(store, name)
            except StoreError as error:
                yield str(error)


def _read_texts(store: Store, name: str) -> None:
    """Read all rows; StoreError where one is not utf-8."""
    rows = store.n_sentence if name.startswith("/sentence/") else store.n_hypothesis
    for start in range(0, rows, 2**11):
        store.read(name, start, start + 2**11)


def _first_fault(store: Store, name: str) -> list[str]:
    """The first row of a dataset that breaks the rule on its values."""
    sizes = {"member": store.n_member, "vocab": store.vocab_size, "k": store.vocab_size}
    row_bytes = 4 * prod(sizes.get(axis, 1) for axis in DATASETS[name].axes)
    rows = store.n_token if name.startswith("/token/") else store.n_hypothesis
    allowed = value_range(name, store.n_member, store.vocab_size, store.combination)
    step = max(1, _BLOCK_BYTES // row_bytes)
    for start in range(0, rows, step):
        values = store.read(name, start, start + step)
        broken = ~((values >= allowed.lowest) & (values <= allowed.highest))
        fault = _fault(store, name, broken, allowed.rule, start)
        if fault:
            return fault
    return []


def _fault(store: Store, name: str, broken: NDArray[Any], rule: str, start: int = 0) -> list[str]:
    """The first row, counted from `start`, that has a broken value."""
    if not broken.any():
        return []
    row, *rest = map(int, np.argwhere(broken)[0])
    row += start
    place = place_of(store, name, [row, *rest])
    return [f"{store.path}: dataset {name}, row {row}, {rule} ({place})"]


def validate(path: str | Path) -> list[str]:
    """Sentences on what is wrong with a store, each naming file, dataset, row and rule; [] if fine.

    Memory stays bounded whatever the size of the store. A file that cannot be read is one sentence;
    so is one that crashes the HDF5 library. Raises MachineError where the check itself cannot run.
    """
    return in_child(store_faults, [Path(path)])[0]

"""Check every value of a decode store of any origin."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.child import in_child
from pipeline.store.normalisation import (
    SUM_RULE,
    entropy_bounds,
    sum_tolerance,
    total_probability,
)
from pipeline.store.reader import Store, open_own_store, opening_faults
from pipeline.store.schema import DATASETS, NAMES, ROUNDING_NATS, TEXT, Flag, value_range

_READ_BYTES = 2**26  # read at a time


def store_faults(path: Path) -> list[str]:
    """The faults of a store; HDF5 may crash this process on a damaged file."""
    faults = opening_faults(path)
    if faults:
        return faults
    try:
        with open_own_store(path) as store:
            faults = [*_sentence_faults(store), *_all_value_faults(store)]
            return faults or _entropy_fault(store)
    except StoreError as error:
        return [str(error)]


def _sentence_faults(store: Store) -> Iterator[str]:
    sentence_id = store.read("/sentence/id")
    wrong = sentence_id != np.arange(store.n_sentence)
    rule = "must be the position in the test set, counted from 0"
    yield from _fault(store, "/sentence/id", sentence_id, wrong, rule)
    empty = np.diff(store.hypothesis_offset) == 0
    rule = f"must not be 0 if there is no hypothesis; set bit {Flag.NO_HYPOTHESIS}"
    yield from _fault(store, "/sentence/flag", store.flag, empty & (store.flag == 0), rule)
    flagged = (store.flag & Flag.NO_HYPOTHESIS).astype(bool)
    rule = f"must have bit {Flag.NO_HYPOTHESIS} only if there is no hypothesis"
    yield from _fault(store, "/sentence/flag", store.flag, ~empty & flagged, rule)


def _name_faults(store: Store, name: str) -> Iterator[str]:
    """The first name that is empty, or the first original that two sentences have."""
    seen: set[str] = set()
    for row, text in enumerate(store.read(name)):
        if not text:
            yield f"{store.path}: dataset {name}, row {row}: must not be empty."
            return
        if name == "/sentence/original" and text in seen:
            yield f"{store.path}: dataset {name}, row {row}: must be unique (got {text!r} again)."
            return
        seen.add(text)


def _all_value_faults(store: Store) -> Iterator[str]:
    for name, dataset in DATASETS.items():
        if store.has(name):
            try:
                if name in NAMES:
                    yield from _name_faults(store, name)
                elif dataset.dtype == TEXT:
                    _read_texts(store, name)
                elif dataset.axes[0] in ("token", "hypothesis"):
                    yield from _first_fault(store, name)
            except StoreError as error:
                yield str(error)


def _read_texts(store: Store, name: str) -> None:
    """Read all rows; raises StoreError if one is not UTF-8."""
    rows = store.n_sentence if name.startswith("/sentence/") else store.n_hypothesis
    for start in range(0, rows, 2**11):
        store.read(name, start, start + 2**11)


def _first_fault(store: Store, name: str) -> list[str]:
    """The first row of a dataset that has a value out of range."""
    sizes = {"member": store.n_member, "vocab": store.vocab_size, "k": store.vocab_size}
    row_bytes = 4 * prod(sizes.get(axis, 1) for axis in DATASETS[name].axes)
    rows = store.n_token if name.startswith("/token/") else store.n_hypothesis
    allowed = value_range(name, store.n_member, store.vocab_size, store.combination)
    step = max(1, _READ_BYTES // row_bytes)
    for start in range(0, rows, step):
        values = store.read(name, start, start + step)
        wrong = ~((values >= allowed.lowest) & (values <= allowed.highest))
        fault = _fault(store, name, values, wrong, allowed.rule, start)
        if not fault and name == "/token/full_logprob":
            fault = _sum_fault(store, name, total_probability(values), start)
        if not fault and name == "/token/topk_logprob":
            tail = store.read("/token/tail_logprob", start, start + step).astype(np.float64)
            total = total_probability(values) + np.exp(np.minimum(tail, 1.0))
            fault = _sum_fault(store, name, total, start)
        if fault:
            return fault
    return []


def _entropy_fault(store: Store) -> list[str]:
    """Describe the first entropy that no distribution with the stored log-prob has."""
    step = max(1, _READ_BYTES // (8 * store.n_member))
    for start in range(0, store.n_token, step):
        entropy = store.read("/token/entropy_member", start, start + step)
        logprob = store.read("/token/logprob", start, start + step)
        lowest, highest = entropy_bounds(logprob, store.vocab_size)
        wrong = (entropy < lowest - ROUNDING_NATS) | (entropy > highest + ROUNDING_NATS)
        rule = "must be the entropy of a distribution with the log-prob of /token/logprob"
        fault = _fault(store, "/token/entropy_member", entropy, wrong, rule, start)
        if fault:
            return fault
    return []


def _sum_fault(store: Store, name: str, total: NDArray[np.float64], first_row: int) -> list[str]:
    """Describe the first total probability [token, member] that is not 1."""
    tolerance = sum_tolerance(store.vocab_size)
    rule = f"{SUM_RULE} to within {tolerance:.1g}"
    return _fault(store, name, total, np.abs(total - 1) > tolerance, rule, first_row)


def _fault(
    store: Store,
    name: str,
    values: NDArray[Any],
    wrong: NDArray[Any],
    rule: str,
    first_row: int = 0,
) -> list[str]:
    """Describe the first wrong value; `first_row` is the row of values[0] in the dataset."""
    if not wrong.any():
        return []
    index = tuple(map(int, np.argwhere(wrong)[0]))
    row = index[0] + first_row
    where = store.place(name, [row, *index[1:]])
    return [f"{store.path}: dataset {name}, row {row}: {rule} (got {values[index]:.6g}; {where})."]


def unchecked(store: Store) -> str | None:
    """Say what cannot be checked because the store does not have it.

    The statistics of a distribution do not tell whether its probabilities sum to 1. None for whole
    distributions, and for a store of stage decode, which has checked them.
    """
    if "config" in store.attributes:
        return None
    known = {
        "statistics": "no distributions are stored, so that this file does not show whether they "
        "sum to 1",
        "topk": "only sums of tails are stored, so that this file does not show whether entropies "
        "are right",
    }.get(store.dump)
    return known and (
        f"{store.path}: {known}. Nothing needs to be done if token_statistics computed the "
        f"statistics, because it checks this. Otherwise use it, or also write a small store with "
        f"full_logprob and validate that one."
    )


def validate(path: str | Path) -> list[str]:
    """Return what is wrong with a store, one sentence per fault; [] if it is valid.

    Each fault names the file, the dataset and the row. Memory does not grow with the store.
    A file that cannot be read, or that crashes the HDF5 library, is one fault. Raises MachineError
    if the check itself cannot run.
    """
    return in_child(store_faults, [Path(path)])[0]

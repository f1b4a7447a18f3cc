"""The root attributes of a decode store, and what may stand in them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import h5py
import numpy as np

from pipeline.store.schema import SCHEMA

SEARCHES = ("beam", "greedy")  # regimes whose best hypothesis is the system's answer
REGIMES = (*SEARCHES, "teacher_forcing", "sample")
SUBSET = "subset"  # attribute `ensemble` of some of an ensemble's members
COMBINATIONS = ("prex", "expr", "member")
# What the writer sets itself.
CONSTANTS: dict[str, Any] = {"schema": SCHEMA, "log_base": "e", "complete": True}
REQUIRED = ("regime", "combination", "n_member", "vocab_size")
_TEXTS = ("task", "test_set", "ensemble", "config", "signature")
_LISTS = ("members", "search_members")
_NUMBERS = (
    "beam",
    "length_penalty",
    "sampling_temperature",
    "sampling_top_k",
    "sampling_top_p",
    "seed",
)
ATTRIBUTES = (*REQUIRED, *_TEXTS, *_LISTS, *_NUMBERS)


def plain(value: Any) -> Any:
    """An attribute as str, int, float, bool or list, whatever string or number type held it."""
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def stored(value: Any) -> Any:
    """A plain attribute as h5py takes it."""
    return np.array(value, dtype=h5py.string_dtype()) if isinstance(value, list) else value


def attribute_faults(attributes: Mapping[str, Any]) -> list[str]:
    """What is wrong with plain root attributes, one clause each."""
    present = {name: value for name, value in attributes.items() if value is not None}
    faults = []
    for name, value in present.items():
        rule = _broken_rule(name, value)
        if rule is not None:
            faults.append(f"attribute {name} must be {rule}, got {value!r}")
    absent = [name for name in REQUIRED if name not in present]
    faults += [f"attribute {name} must be given, got none" for name in absent]
    members, n_member = present.get("members"), present.get("n_member")
    if not faults and members is not None and len(members) != n_member:
        faults.append(
            f"attribute members must have n_member ({n_member}) names, got {len(members)}"
        )
    return faults


def _broken_rule(name: str, value: Any) -> str | None:
    """What a value must be and is not."""
    if name in ("regime", "combination"):
        choices = REGIMES if name == "regime" else COMBINATIONS
        return None if value in choices else f"one of {', '.join(choices)}"
    if name in ("n_member", "vocab_size"):
        return None if isinstance(value, int) and value >= 1 else "a whole number >= 1"
    if name in _TEXTS:
        return None if isinstance(value, str) else "text"
    if name in _LISTS:
        fine = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return None if fine else "a list of names"
    if name in _NUMBERS:
        fine = isinstance(value, int | float) and isfinite(value)
        return None if fine else "a finite number"
    return None

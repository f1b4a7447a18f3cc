"""The format of a decode store: datasets, their axes, types and ranges; attributes; flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from math import inf, isfinite, log
from typing import Any

import h5py
import numpy as np

SCHEMA = "uncertainty-decode/1"
# Rounding of a float32 or float16 softmax can leave log-probs slightly above 0.
ROUNDING_NATS = 1e-2


class Flag(IntFlag):
    """Special properties of a sentence; bits of /sentence/flag."""

    TOO_LONG = 1
    EMPTY_SOURCE = 2
    NO_HYPOTHESIS = 4
    NO_REFERENCE = 8
    NO_FINISHED_HYPOTHESIS = 16


@dataclass(frozen=True)
class Dataset:
    """One dataset: its axes, its type, and the dump that adds it."""

    axes: tuple[str, ...]
    dtype: str
    dump: str = "statistics"


TEXT = "text"
DATASETS = {
    "/sentence/id": Dataset(("sentence",), "int64"),
    "/sentence/source": Dataset(("sentence",), TEXT),
    "/sentence/reference": Dataset(("sentence",), TEXT),
    "/sentence/group": Dataset(("sentence",), TEXT),
    "/sentence/original": Dataset(("sentence",), TEXT),
    "/sentence/flag": Dataset(("sentence",), "uint8"),
    "/sentence/hypothesis_offset": Dataset(("sentence + 1",), "int64"),
    "/hypothesis/token_offset": Dataset(("hypothesis + 1",), "int64"),
    "/hypothesis/finished": Dataset(("hypothesis",), "uint8"),
    "/hypothesis/member": Dataset(("hypothesis",), "int16"),
    "/hypothesis/text": Dataset(("hypothesis",), TEXT),
    "/hypothesis/score": Dataset(("hypothesis",), "float32"),
    "/token/id": Dataset(("token",), "int32"),
    "/token/logprob": Dataset(("token", "member"), "float32"),
    "/token/entropy_member": Dataset(("token", "member"), "float32"),
    "/token/entropy_prex": Dataset(("token",), "float32"),
    "/token/entropy_expr": Dataset(("token",), "float32"),
    "/token/cross_prex": Dataset(("token",), "float32"),
    "/token/cross_expr": Dataset(("token",), "float32"),
    "/token/cross_member_expr": Dataset(("token",), "float32"),
    "/token/full_logprob": Dataset(("token", "member", "vocab"), "float32", "full"),
    "/token/topk_id": Dataset(("token", "k"), "int32", "topk"),
    "/token/topk_logprob": Dataset(("token", "member", "k"), "float32", "topk"),
    "/token/tail_logprob": Dataset(("token", "member"), "float32", "topk"),
}
# What sentences share with others. Each is stored only if every sentence has a name.
NAMES = ("/sentence/group", "/sentence/original")
# Stores of other toolkits may have no references at all.
OPTIONAL = ("/sentence/reference", *NAMES)
# Datasets that may be stored in half precision.
HALF_PRECISION = ("/token/full_logprob",)


@dataclass(frozen=True)
class Range:
    """The values that a dataset may hold, ends included, and the rule in words."""

    lowest: float
    highest: float
    rule: str


def value_range(name: str, n_member: int, vocab_size: int, combination: str) -> Range:
    """The range of a dataset of hypotheses or tokens; NaN is never allowed."""
    if name.endswith("logprob"):
        return Range(-inf, ROUNDING_NATS, "must be a log-prob, <= 0")
    if "/entropy_" in name:
        highest = log(vocab_size) + ROUNDING_NATS
        return Range(-ROUNDING_NATS, highest, "must be an entropy, >= 0 and <= ln vocab_size")
    if "/cross_" in name:
        return Range(-ROUNDING_NATS, inf, "must be a cross-entropy, >= 0")
    if name in ("/token/id", "/token/topk_id"):
        return Range(0, vocab_size - 1, f"must be in [0, vocab_size={vocab_size})")
    if name == "/hypothesis/member":
        # -1: the hypothesis was not drawn by a single member.
        lowest = 0 if combination == "member" else -1
        return Range(lowest, n_member - 1, f"must be in [{lowest}, n_member={n_member})")
    if name == "/hypothesis/finished":
        return Range(0, 1, "must be 0 or 1")
    return Range(-inf, inf, "must be a number")


SEARCHES = ("beam", "greedy")  # regimes whose best hypothesis is the output of the system
REGIMES = (*SEARCHES, "teacher_forcing", "sample")
SUBSET = "subset"  # attribute `ensemble` of a decode by a subset of an ensemble's members
COMBINATIONS = ("prex", "expr", "member")
# Attributes that the writer sets.
CONSTANTS: dict[str, Any] = {"schema": SCHEMA, "log_base": "e", "complete": True}
REQUIRED = ("regime", "combination", "n_member", "vocab_size")
_TEXTS = ("task", "test_set", "ensemble", "config", "signature")
_LISTS = ("members", "search_members")
_NUMBERS = (
    "beam",
    "n_best",
    "length_penalty",
    "sampling_temperature",
    "sampling_top_k",
    "sampling_top_p",
    "seed",
)
ATTRIBUTES = (*REQUIRED, *_TEXTS, *_LISTS, *_NUMBERS)


def plain(value: Any) -> Any:
    """Convert an attribute of any string or number type to str, int, float, bool or list."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def stored(value: Any) -> Any:
    """Convert a plain attribute to what h5py stores."""
    return np.array(value, dtype=h5py.string_dtype()) if isinstance(value, list) else value


def attribute_faults(attributes: Mapping[str, Any]) -> list[str]:
    """Faults of plain root attributes, one sentence each."""
    present = {name: value for name, value in attributes.items() if value is not None}
    faults = []
    for name, value in present.items():
        rule = _broken_rule(name, value)
        if rule is not None:
            faults.append(f"attribute {name}: must be {rule} (got {value!r}).")
    absent = [name for name in REQUIRED if name not in present]
    faults += [f"attribute {name}: missing." for name in absent]
    members, n_member = present.get("members"), present.get("n_member")
    if not faults and members is not None and len(members) != n_member:
        faults.append(
            f"attribute members: must have n_member={n_member} names (got {len(members)})."
        )
    return faults


def _broken_rule(name: str, value: Any) -> str | None:
    """The rule that a value breaks, in words; None if it is valid."""
    if name in ("regime", "combination"):
        choices = REGIMES if name == "regime" else COMBINATIONS
        return None if value in choices else f"one of {', '.join(choices)}"
    if name in ("n_member", "vocab_size"):
        return None if isinstance(value, int) and value >= 1 else "an integer >= 1"
    if name in _TEXTS:
        return None if isinstance(value, str) else "text"
    if name in _LISTS:
        valid = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return None if valid else "a list of names"
    if name in _NUMBERS:
        valid = isinstance(value, int | float) and isfinite(value)
        return None if valid else "a finite number"
    return None

"""The decode store on disk: its datasets, their axes and types, root attributes and flags."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

SCHEMA = "uncertainty-decode/1"
LOG_BASE = "e"


class Flag(IntFlag):
    """Why a sentence is not like the others; bits of /sentence/flag."""

    TOO_LONG = 1
    EMPTY_SOURCE = 2
    NO_HYPOTHESIS = 4
    NO_REFERENCE = 8
    NO_FINISHED_HYPOTHESIS = 16


@dataclass(frozen=True)
class Dataset:
    """One dataset: its axes in axis words and its type; `dump` names the dump that adds it."""

    axes: tuple[str, ...]
    dtype: str
    dump: str = "statistics"


TEXT = "text"
DATASETS = {
    "/sentence/id": Dataset(("sentence",), "int64"),
    "/sentence/source": Dataset(("sentence",), TEXT),
    "/sentence/reference": Dataset(("sentence",), TEXT),
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
# A store of another toolkit may have no references at all.
OPTIONAL = ("/sentence/reference",)
# The one dataset that may be stored in half precision.
HALF_PRECISION = ("/token/full_logprob",)

REGIMES = ("beam", "greedy", "teacher_forcing", "sample")
COMBINATIONS = ("prex", "expr", "member")
REQUIRED_ATTRIBUTES = ("regime", "combination", "n_member", "vocab_size")
ATTRIBUTES = (
    *REQUIRED_ATTRIBUTES,
    "task",
    "test_set",
    "ensemble",
    "beam",
    "length_penalty",
    "sampling_temperature",
    "sampling_top_k",
    "sampling_top_p",
    "seed",
    "members",
    "search_members",
    "config",
    "signature",
)


def lowest_member(combination: str) -> int:
    """The least value of /hypothesis/member: -1 says that no single member drew a hypothesis."""
    return 0 if combination == "member" else -1


def attribute_faults(attributes: dict[str, object]) -> list[str]:
    """What is wrong with the root attributes, one clause each."""
    faults = [
        f"attribute {name} must be given, got none"
        for name in REQUIRED_ATTRIBUTES
        if attributes.get(name) is None
    ]
    for name, choices in (("regime", REGIMES), ("combination", COMBINATIONS)):
        if attributes.get(name) is not None and attributes[name] not in choices:
            faults.append(
                f"attribute {name} must be one of {', '.join(choices)}, got {attributes[name]!r}"
            )
    for name in ("n_member", "vocab_size"):
        value = attributes.get(name)
        if value is not None and not (isinstance(value, int) and value >= 1):
            faults.append(f"attribute {name} must be a whole number >= 1, got {value!r}")
    members = attributes.get("members")
    if isinstance(members, list) and len(members) != attributes.get("n_member", len(members)):
        faults.append(
            f"attribute members must have n_member ({attributes.get('n_member')}) names, "
            f"got {len(members)}"
        )
    return faults

"""The decode store on disk: its datasets, their axes, types and values, and its flags."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from math import inf

SCHEMA = "uncertainty-decode/1"
# Rounding of a float32 or float16 softmax leaves log-probabilities a little above 0.
_ROUNDING_NATS = 1e-2
_LARGEST_FLOAT32 = 3.4028234663852886e38


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


@dataclass(frozen=True)
class Range:
    """Values that a dataset may hold, both ends included, and the rule in words."""

    lowest: float
    highest: float
    rule: str


def value_range(name: str, n_member: int, vocab_size: int, combination: str) -> Range:
    """The values that a dataset of hypotheses or tokens may hold; never NaN."""
    if name.endswith("logprob"):
        return Range(-inf, _ROUNDING_NATS, "must be a log-probability, <= 0")
    if "/entropy_" in name:
        return Range(-_ROUNDING_NATS, _LARGEST_FLOAT32, "must be an entropy, finite and >= 0")
    if "/cross_" in name:
        return Range(-_ROUNDING_NATS, inf, "must be a cross entropy, >= 0")
    if name in ("/token/id", "/token/topk_id"):
        return Range(0, vocab_size - 1, f"must lie in [0, vocab_size={vocab_size})")
    if name == "/hypothesis/member":
        # -1 says that no single member drew a hypothesis.
        lowest = 0 if combination == "member" else -1
        return Range(lowest, n_member - 1, f"must lie in [{lowest}, n_member={n_member})")
    if name == "/hypothesis/finished":
        return Range(0, 1, "must be 0 or 1")
    return Range(-inf, inf, "must be a number")

"""A member of an ensemble: one set of weights and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.parts import file_sha256

_NEEDED = ("model", "seed", "vocabulary_sha256", "weights")


@dataclass(frozen=True)
class Member:
    """One member: `weights` is a safetensors file, `description` the content of its model.json."""

    name: str
    weights: Path
    sha256: str
    seed: int
    description: dict[str, Any]


def read_member(name: str, folder: Path, weights: str) -> Member:
    """The member whose weights are the file `weights` of a part of the train stage.

    Raises DataError where model.json or the weights are missing, or the weights are not those
    whose sha256 model.json holds.
    """
    path = folder / "model.json"
    if not path.is_file():
        raise DataError(f"{path} must exist: member {name} has no description")
    description = _description(path)
    file = folder / weights
    if not file.is_file():
        raise DataError(f"{file} must exist: member {name} has no such weights")
    expected = description["weights"].get(weights)
    found = file_sha256(file)
    if found != expected:
        raise DataError(f"{file} must have the sha256 of model.json, {expected}, got {found}")
    return Member(name, file, found, int(description["seed"]), description)


def _description(path: Path) -> dict[str, Any]:
    """The content of a model.json, with the keys that members are used by."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        description = None
    if not isinstance(description, dict) or not description.keys() >= set(_NEEDED):
        raise DataError(
            f"{path} must be JSON with {', '.join(_NEEDED)}, got a damaged file: "
            "run python -m stages.train again"
        )
    return description


def check_ensemble(members: Sequence[Member]) -> None:
    """Raise DataError, naming both, where two members are the same or do not share a vocabulary."""
    if not members:
        raise DataError("an ensemble must have at least one member, got none")
    first = members[0]
    by_weights: dict[str, Member] = {}
    for member in members:
        twin = by_weights.setdefault(member.sha256, member)
        if twin is not member:
            raise DataError(
                f"members must have different weights, got the same file content for "
                f"{twin.name} and {member.name} ({member.sha256})"
            )
        if member.description["vocabulary_sha256"] != first.description["vocabulary_sha256"]:
            raise DataError(
                f"members must share one vocabulary, got different ones for "
                f"{first.name} and {member.name}"
            )

"""Ensembles: which members stand together, what must hold of them, and what is written of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.run.files import digest, file_sha256


@dataclass(frozen=True)
class DropoutMask:
    """A mask over the units of a model; rate: the share that it drops, None: as in training."""

    rate: float | None
    seed: int


@dataclass(frozen=True)
class Member:
    """One fixed model.

    weights, sha256: a safetensors file; seed: of its training; description: architecture and
    vocabulary, the content of a model.json; update: of training, after which it stands;
    made_from: file name -> sha256 of what the weights come from; mask: dropped units, if any.
    """

    name: str
    weights: Path
    sha256: str
    seed: int | None
    description: Mapping[str, Any]
    update: int | None = None
    made_from: Mapping[str, str] = field(default_factory=dict)
    mask: DropoutMask | None = None

    @property
    def model_sha256(self) -> str:
        """sha256 (hex) of all that its probabilities come from."""
        mask = None if self.mask is None else asdict(self.mask)
        return digest(self.sha256, self.description["model"], mask)

    def check_weights(self) -> None:
        """Raise DataError where the file is missing or not the one that was written."""
        if not self.weights.is_file():
            raise DataError(f"{self.weights} must exist: member {self.name} has no such weights")
        found = file_sha256(self.weights)
        if found != self.sha256:
            raise DataError(
                f"{self.weights} must have the sha256 of model.json, {self.sha256}, got {found}"
            )


@dataclass(frozen=True)
class Ensemble:
    """Members whose predictions are combined.

    name: its kind, or `{kind}.{run}` where there is one of each training run; dictionaries: files
    of the source and the target vocabulary where they are not the prepared ones.
    """

    kind: str
    name: str
    members: tuple[Member, ...]
    dictionaries: tuple[Path, Path] | None = None

    @property
    def member_names(self) -> tuple[str, ...]:
        """Names of the members, in their order."""
        return tuple(member.name for member in self.members)


def check_ensembles(kind: str, main: Sequence[Ensemble], further: Sequence[Ensemble]) -> None:
    """Raise DataError, naming both, where two members of an ensemble are the same model or do not
    share a vocabulary, where one name stands for two models or two ensembles, or where there is no
    ensemble of the main kind.
    """
    if not main:
        raise DataError(f"ensemble {kind} must have at least one member, got none")
    by_ensemble: set[str] = set()
    by_name: dict[str, str] = {}
    for ensemble in (*main, *further):
        if ensemble.name in by_ensemble:
            raise DataError(f"ensembles must have different names, got {ensemble.name} twice")
        by_ensemble.add(ensemble.name)
        _check_members(ensemble)
        for member in ensemble.members:
            if by_name.setdefault(member.name, member.model_sha256) != member.model_sha256:
                raise DataError(
                    f"members of one name must be the same model, got another {member.name} in "
                    f"ensemble {ensemble.name} than in the ensembles before it"
                )


def _check_members(ensemble: Ensemble) -> None:
    if not ensemble.members:
        raise DataError(f"ensemble {ensemble.name} must have at least one member, got none")
    first = ensemble.members[0]
    by_model: dict[str, Member] = {}
    for member in ensemble.members:
        twin = by_model.setdefault(member.model_sha256, member)
        if twin is not member:
            raise DataError(
                f"members must have different weights, got the same model for {twin.name} and "
                f"{member.name} of ensemble {ensemble.name} ({member.sha256})"
            )
        if member.description["vocabulary_sha256"] != first.description["vocabulary_sha256"]:
            raise DataError(
                f"members must share one vocabulary, got different ones for "
                f"{first.name} and {member.name} of ensemble {ensemble.name}"
            )


def manifest(ensembles: Sequence[Ensemble]) -> list[dict[str, Any]]:
    """What ensemble.json holds: of each ensemble its members, and what each member is."""
    return [
        {
            "kind": ensemble.kind,
            "name": ensemble.name,
            "members": [_described(member) for member in ensemble.members],
        }
        for ensemble in ensembles
    ]


def _described(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "checkpoints": dict(member.made_from),
        "sha256": member.sha256,
        "seed": member.seed,
        "update": member.update,
        "dropout": None if member.mask is None else asdict(member.mask),
        "vocabulary_sha256": member.description["vocabulary_sha256"],
        "model_sha256": member.model_sha256,
    }

"""A member of an ensemble: one set of weights and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.parts import digest, file_sha256


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

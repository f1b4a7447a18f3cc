"""One training run of stage train: its description and the weights that it kept."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import Member
from pipeline.errors import DataError
from pipeline.run.artifacts import read_manifest
from pipeline.run.files import complete_folder, file_sha256, write_json

WEIGHTS = "weights.safetensors"
_MADE = "made.json"


def made_folder(train_folder: Path) -> Path:
    """Where made weights of a task are kept; train_folder: {io.root}/train/{task}."""
    return train_folder.parents[1] / "resume" / "ensembles" / train_folder.name


def made(folder: Path, make: Callable[[Path], None]) -> dict[str, str]:
    """File name -> sha256 of what `make` writes into a folder, unless it is there and undamaged.

    `make` gets a temporary folder that takes its place when it is whole, so that a process that is
    killed leaves nothing that passes for it.
    """
    expected = _written(folder)
    if expected is not None and _hashes(folder) == expected:
        return expected
    with complete_folder(folder) as building:
        make(building)
        hashes = _hashes(building)
        write_json(building / _MADE, hashes)
    return hashes


def remove_unused(folder: Path, members: Iterable[Member]) -> None:
    """Delete what was made for other members than these."""
    used = {member.weights.parent for member in members}
    for path in folder.glob("*"):
        if path not in used:
            shutil.rmtree(path)


def _written(folder: Path) -> dict[str, str] | None:
    try:
        hashes: dict[str, str] = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return hashes


def _hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.iterdir() if path.name != _MADE)
    return {path.name: file_sha256(path) for path in sorted(files)}


AVERAGE = "average.safetensors"
_NEEDED = ("model", "seed", "vocabulary_sha256", "weights")
_CHECKPOINT = re.compile(r"update_(\d+)\.safetensors")


@dataclass(frozen=True)
class TrainingRun:
    """The part of one seed; description: the content of its model.json."""

    folder: Path
    description: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the part, `seed_{seed}`."""
        return self.folder.name

    def checkpoints(self) -> list[str]:
        """File names of the checkpoints that were kept, oldest first."""
        names = [name for name in self.description["weights"] if _CHECKPOINT.fullmatch(name)]
        return sorted(names, key=update_of)

    def member(self, name: str, weights: str) -> Member:
        """The member called `name` whose weights are the file `weights` of this run.

        Raises DataError where model.json does not list that file.
        """
        sha256 = self.description["weights"].get(weights)
        if sha256 is None:
            raise DataError(
                f"{self.folder / 'model.json'} must list the weights of member {name}, "
                f"got none called {weights}"
            )
        whole = self.description.get("updates")
        return Member(
            name,
            self.folder / weights,
            sha256,
            int(self.description["seed"]),
            self.description,
            whole if weights == AVERAGE else update_of(weights),
            {f"{self.name}/{weights}": sha256},
        )


def update_of(checkpoint: str) -> int:
    """The update of training after which a checkpoint was written."""
    found = _CHECKPOINT.fullmatch(checkpoint)
    if found is None:
        raise DataError(f"a checkpoint must be called update_N.safetensors, got {checkpoint}")
    return int(found[1])


def read_runs(train_folder: Path, seeds: Sequence[int]) -> list[TrainingRun]:
    """The runs of these seeds, in their order.

    Raises DataError where a seed was not trained or model.json is damaged.
    """
    trained = read_manifest(train_folder) if seeds else {}
    runs = []
    for seed in seeds:
        name = f"seed_{seed}"
        if name not in trained:
            raise DataError(
                f"{train_folder}: ensemble.seeds must be trained, got {seed} where there are "
                f"{', '.join(sorted(trained))}"
            )
        folder = train_folder / name
        runs.append(TrainingRun(folder, _description(folder / "model.json")))
    return runs


def _description(path: Path) -> dict[str, Any]:
    """The content of a model.json, with the keys that members are used by."""
    if not path.is_file():
        raise DataError(f"{path} must exist: {path.parent.name} has no description")
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

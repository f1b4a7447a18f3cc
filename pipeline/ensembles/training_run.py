"""Training runs, finished or planned, and weights that are derived from their checkpoints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import Member
from pipeline.errors import DataError
from pipeline.fairseq_bridge.models import weights
from pipeline.fairseq_bridge.models.weights import AVERAGE, checkpoint_name, checkpoint_update
from pipeline.run.artifacts import Artifact, Provenance, made_once
from pipeline.run.files import digest, file_sha256

WEIGHTS = "weights.safetensors"


def derived_folder(train_folder: Path) -> Path:
    """Return the folder of the weights that are derived from checkpoints of a task.

    train_folder: {io.root}/train/{task}.
    """
    return train_folder.parents[1] / "resume" / "ensembles" / train_folder.name


def derived(
    folder: Path, code: str, made_from: Mapping[str, str], make: Callable[[Path], None]
) -> Artifact:
    """Return the artifact that `make` fills once, in a subfolder of `folder` named by its digest.

    code: digest of the source that makes it; made_from: input -> sha256.
    """
    provenance = Provenance("decode", code, digest(), made_from)
    return made_once(folder / provenance.digest, provenance, make)


def remove_unused(folder: Path, members: Iterable[Member]) -> None:
    """Delete the derived weights that none of these members uses."""
    used = {member.weights.parent for member in members}
    for path in folder.glob("*"):
        if path not in used:
            shutil.rmtree(path)


_REQUIRED = ("model", "seed", "vocabulary_sha256", "weights")


@dataclass(frozen=True)
class TrainingRun:
    """The training of one seed; `description` is the content of its model.json."""

    folder: Path
    description: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the part, `seed_{seed}`."""
        return self.folder.name

    def updates(self) -> list[int]:
        """Updates of the checkpoints that the run keeps, oldest first."""
        updates = (checkpoint_update(name) for name in self.description["weights"])
        return sorted(update for update in updates if update is not None)

    def average(self) -> Member:
        """The member whose weights are the average of the run's last checkpoints."""
        return self._member(self.name, AVERAGE, self.description.get("updates"))

    def checkpoint(self, update: int) -> Member:
        """The member whose weights are those after an update."""
        name = checkpoint_name(update)
        return self._member(f"{self.name}.{Path(name).stem}", name, update)

    def _member(self, name: str, file: str, update: int | None) -> Member:
        sha256 = self.description["weights"].get(file)
        if sha256 is None:
            raise DataError(
                f"{self.folder / 'model.json'}: {file} is not listed (weights of member {name}). "
                "Run python -m stages.train again."
            )
        return Member(
            name,
            self.folder / file,
            sha256,
            int(self.description["seed"]),
            self.description,
            update,
            {f"{self.name}/{file}": sha256},
        )


@dataclass(frozen=True)
class Training:
    """The training runs in the folder {io.root}/train/{task}, from which members are made.

    `folder` is None for a training that is only planned: its members have names but no weights.
    """

    folder: Path | None
    runs: Sequence[TrainingRun]

    def mean(self, run: TrainingRun, updates: Sequence[int]) -> Member:
        """The member whose weights are the mean of checkpoints of a run, written once and reused.

        Raises DataError if a checkpoint is missing or damaged.
        """
        sources = [run.checkpoint(update) for update in updates]
        last = sources[-1]
        if len(sources) == 1:
            return last
        member = replace(
            last,
            name=f"{last.name}.mean_of_{len(sources)}",
            made_from={
                key: sha256 for source in sources for key, sha256 in source.made_from.items()
            },
        )
        if self.folder is None:
            return member
        code = file_sha256(Path(weights.__file__))
        average = partial(_average, sources)
        mean = derived(derived_folder(self.folder), code, member.made_from, average)
        return replace(member, weights=mean.folder / WEIGHTS, sha256=mean.sha256(WEIGHTS))


def _average(sources: Sequence[Member], folder: Path) -> None:
    for source in sources:
        source.check_weights()
    weights.average_weights([source.weights for source in sources], folder / WEIGHTS)


def read_runs(train_folder: Path, seeds: Sequence[int]) -> list[TrainingRun]:
    """Read the training runs of these seeds, in this order.

    Raises DataError if a seed was not trained or its model.json is damaged.
    """
    trained = Artifact(train_folder, "train").parts() if seeds else {}
    runs = []
    for seed in seeds:
        name = f"seed_{seed}"
        if name not in trained:
            raise DataError(
                f"ensemble.seeds: seed {seed} was not trained ({train_folder} has "
                f"{', '.join(sorted(trained))}). Run python -m stages.train with these seeds."
            )
        folder = train_folder / name
        runs.append(TrainingRun(folder, _description(folder / "model.json")))
    return runs


def planned_training(train: Mapping[str, Any], seeds: Sequence[int]) -> Training:
    """The training that settings of group `train` describe, with the weights that it will keep."""
    files = [*map(checkpoint_name, weights.kept_updates(train)), AVERAGE]
    description = {
        "model": {},
        "updates": int(train["updates"]),
        "vocabulary_sha256": "",
        "weights": dict.fromkeys(files, ""),
    }
    runs = [TrainingRun(Path(f"seed_{seed}"), description | {"seed": seed}) for seed in seeds]
    return Training(None, runs)


def _description(path: Path) -> dict[str, Any]:
    """The content of a model.json, with the keys that members need."""
    if not path.is_file():
        raise DataError(f"{path}: no such file. Run python -m stages.train again.")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        description = None
    if not isinstance(description, dict) or not description.keys() >= set(_REQUIRED):
        raise DataError(
            f"{path}: damaged, or without some of the keys {', '.join(_REQUIRED)}. "
            "Run python -m stages.train again."
        )
    return description

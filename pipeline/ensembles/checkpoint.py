"""Checkpoint ensembles (CPT-ENS): of each run, the last checkpoints or averages of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.config import EnsembleConfig
from pipeline.ensembles.ensemble import Ensemble
from pipeline.ensembles.made_files import WEIGHTS, made, made_folder
from pipeline.ensembles.member import Member
from pipeline.ensembles.settings import Settings
from pipeline.ensembles.training_run import TrainingRun, read_runs
from pipeline.errors import DataError
from pipeline.fairseq_bridge import weights
from pipeline.parts import digest, file_sha256


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble a seed, members oldest first.

    settings: `members` of an ensemble, each the mean of `average` checkpoints in succession,
    `every` checkpoints from one member to the next, so that the last member ends with the last
    checkpoint. Raises DataError where a seed was not trained or kept too few checkpoints,
    ConfigError for a setting that breaks its rule.
    """
    settings = Settings(ensemble, "members", "average", "every")
    count, average, every = (
        settings.whole_number(name, 1) for name in ("members", "average", "every")
    )
    needed = average + (count - 1) * every
    ensembles = []
    for run in read_runs(train_folder, ensemble.seeds):
        kept = run.checkpoints()
        if len(kept) < needed:
            raise DataError(
                f"{run.folder} must hold the {needed} checkpoints that ensemble {ensemble.name} "
                f"needs, got {len(kept)}: train with train.keep_checkpoints={needed}"
            )
        ends = [len(kept) - place * every for place in reversed(range(count))]
        groups = [kept[end - average : end] for end in ends]
        found = tuple(_member(run, group, made_folder(train_folder)) for group in groups)
        ensembles.append(Ensemble(ensemble.name, f"{ensemble.name}.{run.name}", found))
    return ensembles


def _member(run: TrainingRun, checkpoints: list[str], folder: Path) -> Member:
    """The mean of some checkpoints, made once."""
    name = f"{run.name}.{Path(checkpoints[-1]).stem}"
    sources = [run.member(name, one) for one in checkpoints]
    if len(sources) == 1:
        return sources[0]
    code = file_sha256(Path(weights.__file__))
    place = folder / digest(code, [one.sha256 for one in sources])
    hashes = made(place, partial(_average, sources))
    return replace(
        sources[-1],
        name=f"{name}.mean_of_{len(sources)}",
        weights=place / WEIGHTS,
        sha256=hashes[WEIGHTS],
        made_from={key: value for one in sources for key, value in one.made_from.items()},
    )


def _average(sources: list[Member], folder: Path) -> None:
    for one in sources:
        one.check_weights()
    weights.average_weights([one.weights for one in sources], folder / WEIGHTS)

"""Snapshot ensembles: of each run, the checkpoints at the ends of its learning-rate cycles."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import EnsembleConfig
from pipeline.ensembles.ensemble import Ensemble
from pipeline.ensembles.settings import Settings
from pipeline.ensembles.training_run import read_runs, update_of
from pipeline.errors import DataError


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble a seed, a member a cycle.

    settings: `cycles` of the learning rate in training. Raises DataError where a seed was not
    trained or the end of a cycle was not kept, ConfigError where there is but one cycle.
    """
    cycles = Settings(ensemble, "cycles").value(
        "cycles",
        "a whole number >= 2 (train with train.schedule=cosine and train.cycles)",
        lambda value: type(value) is int and value >= 2,
    )
    ensembles = []
    for run in read_runs(train_folder, ensemble.seeds):
        length = int(run.description["updates"]) // cycles
        kept = [one for one in run.checkpoints() if update_of(one) % length == 0]
        if len(kept) != cycles:
            raise DataError(
                f"{run.folder} must hold the checkpoints at the ends of {cycles} cycles of "
                f"{length} updates, got {len(kept)}: run python -m stages.train with "
                f"train.cycles={cycles}"
            )
        found = tuple(run.member(f"{run.name}.{Path(one).stem}", one) for one in kept)
        ensembles.append(Ensemble(ensemble.name, f"{ensemble.name}.{run.name}", found))
    return ensembles

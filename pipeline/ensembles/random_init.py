"""The paper's ensemble: models that differ in the seed of their training."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import EnsembleConfig
from pipeline.ensembles.ensemble import Ensemble
from pipeline.ensembles.training_run import AVERAGE, read_runs


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble, a member a seed in the order of `ensemble.seeds`: averages of the last updates.

    Raises DataError where a seed was not trained.
    """
    runs = read_runs(train_folder, ensemble.seeds)
    found = tuple(run.member(run.name, AVERAGE) for run in runs)
    return [Ensemble(ensemble.name, ensemble.name, found)]

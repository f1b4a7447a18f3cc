"""The paper's single model (CPT-AVG): of each run, the average of its last checkpoints."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import EnsembleConfig
from pipeline.ensembles.ensemble import Ensemble
from pipeline.ensembles.training_run import AVERAGE, read_runs


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble of one member a seed, so that tables give their mean and spread.

    Raises DataError where a seed was not trained.
    """
    return [
        Ensemble(ensemble.name, f"{ensemble.name}.{run.name}", (run.member(run.name, AVERAGE),))
        for run in read_runs(train_folder, ensemble.seeds)
    ]

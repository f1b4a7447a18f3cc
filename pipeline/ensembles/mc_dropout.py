"""Monte-Carlo dropout: one model, and a member for each of some fixed dropout masks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.config import EnsembleConfig
from pipeline.ensembles.ensemble import Ensemble
from pipeline.ensembles.member import DropoutMask
from pipeline.ensembles.settings import Settings
from pipeline.ensembles.training_run import AVERAGE, read_runs


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble of the first seed's model; a member keeps its mask for all tokens and sentences.

    settings: `members`, the `seed` of the first mask (each further one counts on), and the `rate`
    of the units that a mask drops (null: as in training). Raises DataError where the seed was not
    trained, ConfigError for a setting that breaks its rule.
    """
    settings = Settings(ensemble, "members", "rate", "seed")
    count, seed = settings.whole_number("members", 1), settings.whole_number("seed", 0)
    rate = settings.value("rate", "null or in (0, 1)", lambda one: one is None or 0 < one < 1)
    (run,) = read_runs(train_folder, ensemble.seeds[:1])
    model = run.member(run.name, AVERAGE)
    found = tuple(
        replace(model, name=f"{ensemble.name}_{place + 1}", mask=DropoutMask(rate, seed + place))
        for place in range(count)
    )
    return [Ensemble(ensemble.name, ensemble.name, found)]

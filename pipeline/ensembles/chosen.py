"""The ensembles that the settings ask for, with trained members or as planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.ensembles.ensemble import Ensemble, check_ensembles, planned_member
from pipeline.ensembles.kinds import EnsembleFunction
from pipeline.run.settings import EnsembleConfig, MainEnsembleConfig, TrainConfig, implementation


@dataclass(frozen=True)
class Chosen:
    """The ensembles of a task: `main` from group `ensemble`, `further` from `ensemble.also`."""

    main: list[Ensemble]
    further: list[Ensemble]

    @property
    def by_name(self) -> dict[str, Ensemble]:
        """All ensembles."""
        return {ensemble.name: ensemble for ensemble in (*self.main, *self.further)}


def ensemble_functions(config: MainEnsembleConfig) -> list[EnsembleFunction]:
    """The function of each kind of ensemble, the main kind first.

    Raises ConfigError if a function cannot be imported.
    """
    return [_function(ensemble) for ensemble in _ensemble_settings(config)]


def chosen_ensembles(config: MainEnsembleConfig, train_folder: Path) -> Chosen:
    """All ensembles of the members in {io.root}/train/{task}.

    Raises ConfigError for an invalid setting, DataError if members are missing or cannot form an
    ensemble (see `check_ensembles`).
    """
    main, *further = (
        _function(ensemble)(train_folder, ensemble) for ensemble in _ensemble_settings(config)
    )
    chosen = Chosen(main, [ensemble for ensembles in further for ensemble in ensembles])
    check_ensembles(config.name, chosen.main, chosen.further)
    return chosen


def planned_ensembles(config: MainEnsembleConfig, train: TrainConfig) -> Chosen:
    """All ensembles that a planned training will give; their members have names but no weights.

    A kind that is not registered in `kinds` is assumed to have one ensemble, with
    `settings.members` members or one per seed. Raises ConfigError for an invalid setting and for a
    training that would keep too few checkpoints.
    """
    main, *further = (_planned(ensemble, train) for ensemble in _ensemble_settings(config))
    return Chosen(main, [ensemble for ensembles in further for ensemble in ensembles])


def _planned(ensemble: EnsembleConfig, train: TrainConfig) -> list[Ensemble]:
    kind = getattr(_function(ensemble), "kind", None)
    if kind is not None:
        planned: list[Ensemble] = kind.planned(ensemble, train)
        return planned
    n_member = int(ensemble.settings.get("members", len(ensemble.seeds)))
    members = (planned_member(f"{ensemble.name}_{index + 1}") for index in range(n_member))
    return [Ensemble(ensemble.name, ensemble.name, tuple(members))]


def _function(ensemble: EnsembleConfig) -> EnsembleFunction:
    return implementation(ensemble._target_, f"_target_ of ensemble {ensemble.name}")


def _ensemble_settings(config: MainEnsembleConfig) -> list[EnsembleConfig]:
    """The settings of the main ensemble and of those in `also`, each kind once."""
    return [config, *(further for further in config.also.values() if further.name != config.name)]

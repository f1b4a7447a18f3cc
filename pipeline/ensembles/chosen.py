"""The ensembles that the settings ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.ensembles.ensemble import Ensemble, check_ensembles
from pipeline.run.settings import EnsembleConfig, MainEnsembleConfig, implementation

Finder = Callable[[Path, EnsembleConfig], list[Ensemble]]


@dataclass(frozen=True)
class Chosen:
    """main: of the kind `ensemble`; further: of the kinds in `ensemble.also`."""

    main: list[Ensemble]
    further: list[Ensemble]

    @property
    def by_name(self) -> dict[str, Ensemble]:
        """All of them."""
        return {one.name: one for one in (*self.main, *self.further)}


def finders(config: MainEnsembleConfig) -> list[Finder]:
    """The function of each kind, the main one's first; ConfigError where one is not importable."""
    return [
        implementation(one._target_, f"_target_ of ensemble {one.name}") for one in _kinds(config)
    ]


def chosen_ensembles(config: MainEnsembleConfig, train_folder: Path) -> Chosen:
    """All ensembles; raises what the functions of the kinds and `check_ensembles` raise."""
    main, *further = (
        find(train_folder, one) for find, one in zip(finders(config), _kinds(config), strict=True)
    )
    chosen = Chosen(main, [one for kind in further for one in kind])
    check_ensembles(config.name, main, chosen.further)
    return chosen


def _kinds(config: MainEnsembleConfig) -> list[EnsembleConfig]:
    """The main kind and the others; one of `also` that has the main one's name is that one."""
    return [config, *(one for one in config.also.values() if one.name != config.name)]

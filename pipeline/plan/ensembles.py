"""The ensembles that settings ask for, before any of their members is trained."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import EnsembleConfig, MainEnsembleConfig
from pipeline.ensembles import Ensemble, Member

# The setting that counts the members of an ensemble, by kind; else there is one a training run.
_COUNTED_BY = {"checkpoint": "members", "mc_dropout": "members", "snapshot": "cycles"}
_ONE_OF_EACH_RUN = ("checkpoint", "checkpoint_average", "snapshot")


def planned_ensembles(config: MainEnsembleConfig) -> tuple[list[Ensemble], list[Ensemble]]:
    """Ensembles of the main kind and of `ensemble.also`, of members without weights."""
    further = [one for name, one in config.also.items() if name != config.name]
    return _of_kind(config), [ensemble for one in further for ensemble in _of_kind(one)]


def _of_kind(config: EnsembleConfig) -> list[Ensemble]:
    kind = config.name
    if kind not in _ONE_OF_EACH_RUN:
        return [Ensemble(kind, kind, _members(config, kind))]
    names = [f"{kind}.seed_{seed}" for seed in config.seeds]
    return [Ensemble(kind, name, _members(config, name)) for name in names]


def _members(config: EnsembleConfig, name: str) -> tuple[Member, ...]:
    if config.name == "random_init":
        return tuple(Member(f"seed_{seed}", Path(), "", seed, {}) for seed in config.seeds)
    if config.name in _COUNTED_BY:
        count = int(config.settings[_COUNTED_BY[config.name]])
    elif config.name == "checkpoint_average":
        count = 1
    else:
        count = len(config.settings.get("checkpoints", config.seeds))
    return tuple(Member(f"{name}_{place}", Path(), "", None, {}) for place in range(count))

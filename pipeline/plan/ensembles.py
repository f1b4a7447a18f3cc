"""The ensembles that settings ask for, before any of their members is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.config import EnsembleConfig, MainEnsembleConfig, TrainConfig, plain
from pipeline.ensembles import Ensemble, Member
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.training_state import kept_weights


def planned_ensembles(
    config: MainEnsembleConfig, train: TrainConfig
) -> tuple[list[Ensemble], list[Ensemble]]:
    """Ensembles of the main kind and of `ensemble.also`, of members without weights.

    Members have the names that they will have. A kind of the user's own is taken to have one
    member a training run, whose names are not known. Raises ConfigError where training is too short
    for a checkpoint ensemble.
    """
    further = [one for name, one in config.also.items() if name != config.name]
    return _of_kind(config, train), [
        ensemble for one in further for ensemble in _of_kind(one, train)
    ]


def _of_kind(config: EnsembleConfig, train: TrainConfig) -> list[Ensemble]:
    kind = config.name
    of_run = _OF_EACH_RUN.get(kind)
    if of_run is None:
        names = _runs(config) if kind == "random_init" else _numbered(config)
        return [Ensemble(kind, kind, _members(names))]
    return [
        Ensemble(kind, f"{kind}.seed_{seed}", _members(of_run(config, train, f"seed_{seed}")))
        for seed in config.seeds
    ]


def _members(names: Iterator[str]) -> tuple[Member, ...]:
    return tuple(Member(name, Path(), "", None, {}) for name in names)


def _runs(config: EnsembleConfig) -> Iterator[str]:
    return (f"seed_{seed}" for seed in config.seeds)


def _numbered(config: EnsembleConfig) -> Iterator[str]:
    settings = config.settings
    count = settings.get("members", len(settings.get("checkpoints", config.seeds)))
    return (f"{config.name}_{place}" for place in range(1, int(count) + 1))


def _last_checkpoints(config: EnsembleConfig, train: TrainConfig, run: str) -> Iterator[str]:
    settings = config.settings
    count, average, every = (int(settings[name]) for name in ("members", "average", "every"))
    kept = list(kept_weights(Path(), plain(train)))
    needed = average + (count - 1) * every
    if needed > len(kept):
        raise ConfigError(
            f"train.updates must give the {needed} checkpoints that ensemble {config.name} needs, "
            f"got {train.updates}, which give {len(kept)}"
        )
    mean = f".mean_of_{average}" if average > 1 else ""
    for place in reversed(range(count)):
        yield f"{run}.update_{kept[-1 - place * every]:08d}{mean}"


def _ends_of_cycles(config: EnsembleConfig, train: TrainConfig, run: str) -> Iterator[str]:
    cycles = int(config.settings["cycles"])
    for cycle in range(1, cycles + 1):
        yield f"{run}.update_{cycle * train.updates // cycles:08d}"


def _average(config: EnsembleConfig, train: TrainConfig, run: str) -> Iterator[str]:
    yield run


# The names of the members of a kind that has an ensemble of each training run.
_OF_EACH_RUN: dict[str, Callable[[EnsembleConfig, TrainConfig, str], Iterator[str]]] = {
    "checkpoint": _last_checkpoints,
    "checkpoint_average": _average,
    "snapshot": _ends_of_cycles,
}

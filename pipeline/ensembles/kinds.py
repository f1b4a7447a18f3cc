"""Monte-Carlo dropout: one model, and a member for each of some fixed dropout masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import DropoutMask, Ensemble, Member
from pipeline.ensembles.training_run import (
    AVERAGE,
    WEIGHTS,
    TrainingRun,
    made,
    made_folder,
    read_runs,
    update_of,
)
from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.models import weights
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import EnsembleConfig, plain, unknown_key_message


class Settings:
    """The settings of one ensemble.

    Raises ConfigError where there are others than `names`, or where one is missing or breaks its
    rule.
    """

    def __init__(self, ensemble: EnsembleConfig, *names: str) -> None:
        self._ensemble = ensemble.name
        self._values: dict[str, Any] = plain(ensemble.settings)
        for name in self._values:
            if name not in names:
                where = f"settings of ensemble {self._ensemble}"
                raise ConfigError(unknown_key_message(f"settings.{name}", list(names), where))

    def value(self, name: str, rule: str, holds: Callable[[Any], bool]) -> Any:
        """The setting `name`, which must be as the words `rule` say and `holds` tells."""
        value = self._values.get(name)
        if not holds(value):
            raise ConfigError(
                f"settings.{name} of ensemble {self._ensemble} must be {rule}, got {value}"
            )
        return value

    def whole_number(self, name: str, least: int) -> int:
        """The setting `name`, a whole number that is at least so large."""
        return int(
            self.value(
                name,
                f"a whole number >= {least}",
                lambda value: type(value) is int and value >= least,
            )
        )


def random_init(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble, a member a seed in the order of `ensemble.seeds`: averages of the last updates.

    Raises DataError where a seed was not trained.
    """
    runs = read_runs(train_folder, ensemble.seeds)
    found = tuple(run.member(run.name, AVERAGE) for run in runs)
    return [Ensemble(ensemble.name, ensemble.name, found)]


def checkpoint_average(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble of one member a seed, so that tables give their mean and spread.

    Raises DataError where a seed was not trained.
    """
    return [
        Ensemble(ensemble.name, f"{ensemble.name}.{run.name}", (run.member(run.name, AVERAGE),))
        for run in read_runs(train_folder, ensemble.seeds)
    ]


def checkpoint(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
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


def snapshot(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
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


def mc_dropout(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
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

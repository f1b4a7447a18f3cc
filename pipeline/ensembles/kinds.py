"""The kinds of ensembles: one registered function per kind, which `ensemble._target_` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import DropoutMask, Ensemble, Member, planned_member
from pipeline.ensembles.huggingface import TOKENIZER, huggingface_members
from pipeline.ensembles.imported import imported_member
from pipeline.ensembles.training_run import (
    Training,
    TrainingRun,
    derived_folder,
    planned_training,
    read_runs,
)
from pipeline.errors import ConfigError, DataError
from pipeline.huggingface.folder import SPEECH_MODELS
from pipeline.run.settings import EnsembleConfig, TrainConfig, plain, unknown_key_message

Settings = Mapping[str, Any]
Builder = Callable[[Training, EnsembleConfig, Settings], list[Ensemble]]
EnsembleFunction = Callable[[Path, EnsembleConfig], list[Ensemble]]


@dataclass(frozen=True)
class Rule:
    """The rule of a setting, in words and as a test."""

    text: str
    holds: Callable[[Any], bool]


def _at_least(minimum: int) -> Rule:
    return Rule(f"an integer >= {minimum}", lambda value: type(value) is int and value >= minimum)


@dataclass(frozen=True)
class Kind:
    """A kind of ensemble, and what it needs of training.

    build: makes the ensembles of a training, finished or planned, from checked settings.
    settings: the rules of its settings. runs: the number of seeds that it uses, from the first one
    on (None: all of them). checkpoints: the number of last checkpoints that each run must keep.
    """

    build: Builder
    settings: Mapping[str, Rule]
    runs: int | None
    checkpoints: Callable[[Settings], int]

    def trained(self, train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
        """Ensembles of the training runs in {io.root}/train/{task}.

        Raises ConfigError for an invalid setting, DataError if training did not leave what the kind
        needs.
        """
        settings = self._checked_settings(ensemble)
        runs = read_runs(train_folder, ensemble.seeds[: self.runs])
        needed = self.checkpoints(settings)
        for run in runs:
            if len(run.updates()) < needed:
                raise DataError(
                    f"{run.folder}: has {len(run.updates())} checkpoints, but ensemble "
                    f"{ensemble.name} needs {needed}. Train with train.keep_checkpoints={needed}."
                )
        return self.build(Training(train_folder, runs), ensemble, settings)

    def planned(self, ensemble: EnsembleConfig, train: TrainConfig) -> list[Ensemble]:
        """Ensembles of a training that has yet to be run; their members have no weights.

        Raises ConfigError for an invalid setting or a training that would keep too few checkpoints.
        """
        settings = self._checked_settings(ensemble)
        training = planned_training(plain(train), ensemble.seeds[: self.runs])
        needed = self.checkpoints(settings)
        for run in training.runs:
            if len(run.updates()) < needed:
                raise ConfigError(
                    f"train.updates: ensemble {ensemble.name} needs {needed} checkpoints, but "
                    f"{train.updates} updates give {len(run.updates())}. Train longer."
                )
        return self.build(training, ensemble, settings)

    def check_training(self, ensemble: EnsembleConfig, train: TrainConfig) -> None:
        """Raise ConfigError if a setting has no such name, or seeds or checkpoints are too few."""
        self._check_names(ensemble)
        if self.runs != 0 and not ensemble.seeds:
            raise ConfigError(
                f"ensemble.seeds: must have a seed for ensemble {ensemble.name} (got [])."
            )
        try:
            needed = self.checkpoints(self._checked_settings(ensemble))
        except ConfigError:
            return  # settings of an ensemble are checked by the stages that use it
        if needed > train.keep_checkpoints:
            raise ConfigError(
                f"train.keep_checkpoints: must be at least {needed} for ensemble {ensemble.name} "
                f"(got {train.keep_checkpoints})."
            )

    def _check_names(self, ensemble: EnsembleConfig) -> None:
        where = f"settings of ensemble {ensemble.name}"
        for name in plain(ensemble.settings):
            if name not in self.settings:
                known = list(self.settings)
                raise ConfigError(unknown_key_message(f"settings.{name}", known, where))

    def _checked_settings(self, ensemble: EnsembleConfig) -> dict[str, Any]:
        self._check_names(ensemble)
        settings: dict[str, Any] = plain(ensemble.settings)
        for name, rule in self.settings.items():
            if not rule.holds(settings.get(name)):
                value = settings.get(name)
                hint = (
                    f" Write [{value}]." if isinstance(value, str) and rule.holds([value]) else ""
                )
                raise ConfigError(
                    f"settings.{name} of ensemble {ensemble.name}: must be {rule.text} "
                    f"(got {value}).{hint}"
                )
        return settings


KINDS: dict[str, Kind] = {}


def _kind(
    settings: Mapping[str, Rule] | None = None,
    runs: int | None = None,
    checkpoints: Callable[[Settings], int] = lambda settings: 0,
) -> Callable[[Builder], EnsembleFunction]:
    """Register a kind; the decorated builder becomes the function that `_target_` names."""

    def register(build: Builder) -> EnsembleFunction:
        kind = Kind(build, settings or {}, runs, checkpoints)

        @wraps(build)
        def ensembles(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
            return kind.trained(train_folder, ensemble)

        ensembles.kind = kind  # type: ignore[attr-defined]
        KINDS[build.__name__] = kind
        return ensembles

    return register


@_kind()
def random_init(training: Training, ensemble: EnsembleConfig, _: Settings) -> list[Ensemble]:
    """One ensemble with one member per seed, the average of its last checkpoints."""
    members = tuple(run.average() for run in training.runs)
    return [Ensemble(ensemble.name, ensemble.name, members)]


@_kind()
def checkpoint_average(training: Training, ensemble: EnsembleConfig, _: Settings) -> list[Ensemble]:
    """One ensemble with a single member per seed, so that tables give their mean and spread."""
    return [_of_run(ensemble, run, [run.average()]) for run in training.runs]


@_kind(
    settings={name: _at_least(1) for name in ("members", "average", "every")},
    checkpoints=lambda settings: (
        settings["average"] + (settings["members"] - 1) * settings["every"]
    ),
)
def checkpoint(training: Training, ensemble: EnsembleConfig, settings: Settings) -> list[Ensemble]:
    """One ensemble per seed of its last checkpoints, oldest first.

    Each of `members` is the mean of `average` consecutive checkpoints, and starts `every`
    checkpoints after the previous one. The last member ends with the last checkpoint.
    """
    average, every = settings["average"], settings["every"]
    ensembles = []
    for run in training.runs:
        updates = run.updates()
        ends = [len(updates) - index * every for index in reversed(range(settings["members"]))]
        members = [training.mean(run, updates[end - average : end]) for end in ends]
        ensembles.append(_of_run(ensemble, run, members))
    return ensembles


@_kind(
    settings={
        "cycles": Rule(
            "an integer >= 2, as train.cycles with train.schedule=cosine",
            lambda value: type(value) is int and value >= 2,
        )
    }
)
def snapshot(training: Training, ensemble: EnsembleConfig, settings: Settings) -> list[Ensemble]:
    """One ensemble per seed; each member is the checkpoint at the end of a learning-rate cycle."""
    cycles = settings["cycles"]
    ensembles = []
    for run in training.runs:
        length = int(run.description["updates"]) // cycles
        ends = [update for update in run.updates() if update % length == 0]
        if len(ends) != cycles:
            raise DataError(
                f"{run.folder}: has {len(ends)} checkpoints at the ends of {cycles} cycles of "
                f"{length} updates. Run python -m stages.train with train.cycles={cycles}."
            )
        ensembles.append(_of_run(ensemble, run, [run.checkpoint(update) for update in ends]))
    return ensembles


# Rules of the settings of dropout masks.
_MASKS = {
    "rate": Rule("null or in (0, 1)", lambda value: value is None or 0 < value < 1),
    "seed": _at_least(0),
}


@_kind(
    settings={
        "members": _at_least(1),
        **_MASKS,
    },
    runs=1,
)
def mc_dropout(training: Training, ensemble: EnsembleConfig, settings: Settings) -> list[Ensemble]:
    """One ensemble of the first seed's model, with one member per dropout mask.

    A mask drops the share `rate` of the units (None: as in training) and stays the same for all
    tokens and sentences. The first of `members` masks has `seed`, the next one `seed` + 1, etc.
    """
    model = training.runs[0].average()
    members = tuple(
        replace(
            model,
            name=f"{ensemble.name}_{index + 1}",
            mask=DropoutMask(settings["rate"], settings["seed"] + index),
        )
        for index in range(settings["members"])
    )
    return [Ensemble(ensemble.name, ensemble.name, members)]


@_kind(
    settings={
        "checkpoints": Rule(
            "a list of paths, at least one",
            lambda value: (
                isinstance(value, list)
                and bool(value)
                and all(isinstance(path, str) for path in value)
            ),
        ),
        "source_dictionary": Rule("a path", lambda value: isinstance(value, str)),
        "target_dictionary": Rule("a path", lambda value: isinstance(value, str)),
    },
    runs=0,
)
def imported(training: Training, ensemble: EnsembleConfig, settings: Settings) -> list[Ensemble]:
    """One ensemble with one member per fairseq checkpoint, and with their vocabularies.

    `checkpoints`, `source_dictionary` and `target_dictionary` are paths, relative to the working
    directory. Raises ConfigError if a file does not exist, DataError if a checkpoint cannot be read
    or does not fit the dictionaries.
    """
    checkpoints = [Path(path) for path in settings["checkpoints"]]
    dictionaries = Path(settings["source_dictionary"]), Path(settings["target_dictionary"])
    names = [f"{ensemble.name}_{index}" for index in range(1, len(checkpoints) + 1)]
    if training.folder is None:
        members = [planned_member(name) for name in names]
    else:
        for key, path in (
            *(("checkpoints", path) for path in checkpoints),
            *zip(("source_dictionary", "target_dictionary"), dictionaries, strict=True),
        ):
            if not path.is_file():
                where = f"settings.{key} of ensemble {ensemble.name}"
                raise ConfigError(f"{where}: no such file (got {path}). Give an existing file.")
        folder = derived_folder(training.folder)
        members = [
            imported_member(name, path, dictionaries, folder)
            for name, path in zip(names, checkpoints, strict=True)
        ]
    return [Ensemble(ensemble.name, ensemble.name, tuple(members), dictionaries)]


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_TEXT_OR_NULL = Rule("null or a text", lambda value: value is None or isinstance(value, str))


@_kind(
    settings={
        "models": Rule(
            "a list of folders or names, at least one",
            lambda value: _is_list_of_texts(value) and bool(value),
        ),
        "adapters": Rule("a list of folders", _is_list_of_texts),
        "members": Rule(
            "null or an integer >= 1", lambda value: value is None or _at_least(1).holds(value)
        ),
        **_MASKS,
        "prompt": _TEXT_OR_NULL,
        "source_language": _TEXT_OR_NULL,
        "target_language": _TEXT_OR_NULL,
        "allow_download": Rule("true or false", lambda value: isinstance(value, bool)),
    },
    runs=0,
)
def huggingface(training: Training, ensemble: EnsembleConfig, settings: Settings) -> list[Ensemble]:
    """One ensemble with one member per Hugging Face model, or per adapter or mask of one model.

    `members` is the number of dropout masks, as in kind mc_dropout. The models' own tokenizer,
    which must be the same, cuts the text of test sets. Raises ConfigError if a folder does not
    exist, DataError if a model cannot be read.
    """
    speech = None
    if training.folder is None:
        count = settings["members"] or len(settings["adapters"] or settings["models"])
        members = [planned_member(f"{ensemble.name}_{index}") for index in range(1, count + 1)]
    else:
        members = huggingface_members(ensemble.name, settings)
        speech = members[0].description["model"]["_name"] in SPEECH_MODELS
    name = ensemble.name
    return [Ensemble(name, name, tuple(members), tokenizer=TOKENIZER, takes_speech=speech)]


def _of_run(ensemble: EnsembleConfig, run: TrainingRun, members: Sequence[Member]) -> Ensemble:
    return Ensemble(ensemble.name, f"{ensemble.name}.{run.name}", tuple(members))

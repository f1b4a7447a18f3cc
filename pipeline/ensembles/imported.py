"""Models that a user already has: fairseq's own checkpoints, with their dictionaries."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import Ensemble, Member
from pipeline.ensembles.kinds import Settings
from pipeline.ensembles.training_run import WEIGHTS, made, made_folder
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.members import imported
from pipeline.run.files import digest, file_sha256, write_json
from pipeline.run.settings import EnsembleConfig

_DESCRIPTION = "model.json"


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """One ensemble, a member a checkpoint, with the vocabularies that these were trained with.

    settings: `checkpoints`, `source_dictionary` and `target_dictionary` are paths, relative ones to
    the working folder. Raises ConfigError where one names no file, DataError where a checkpoint is
    none that can be read or does not fit its dictionaries.
    """
    settings = Settings(ensemble, "checkpoints", "source_dictionary", "target_dictionary")
    paths = [
        _file(ensemble, "checkpoints", one)
        for one in settings.value("checkpoints", "a list of paths, at least one", _are_texts)
    ]
    source, target = (
        _file(ensemble, name, settings.value(name, "a path", lambda one: isinstance(one, str)))
        for name in ("source_dictionary", "target_dictionary")
    )
    dictionaries = (source, target)
    folder = made_folder(train_folder)
    found = tuple(
        _member(f"{ensemble.name}_{place}", path, dictionaries, folder)
        for place, path in enumerate(paths, start=1)
    )
    return [Ensemble(ensemble.name, ensemble.name, found, dictionaries)]


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _file(ensemble: EnsembleConfig, name: str, path: str) -> Path:
    if not Path(path).is_file():
        raise ConfigError(
            f"settings.{name} of ensemble {ensemble.name} must name a file, "
            f"got {path}, which is none"
        )
    return Path(path)


def _member(name: str, path: Path, dictionaries: tuple[Path, Path], folder: Path) -> Member:
    """The weights of a checkpoint as a safetensors file, made once."""
    sha256 = file_sha256(path)
    vocabularies = [file_sha256(one) for one in dictionaries]
    place = folder / digest(file_sha256(Path(imported.__file__)), sha256, vocabularies)
    hashes = made(place, partial(_convert, path, dictionaries))
    description = json.loads((place / _DESCRIPTION).read_text(encoding="utf-8"))
    description["vocabulary_sha256"] = vocabularies[1]
    return Member(
        name,
        place / WEIGHTS,
        hashes[WEIGHTS],
        description["seed"],
        description,
        description["updates"],
        {path.name: sha256},
    )


def _convert(path: Path, dictionaries: tuple[Path, Path], folder: Path) -> None:
    description = imported.convert_checkpoint(path, *dictionaries, folder / WEIGHTS)
    write_json(folder / _DESCRIPTION, description)

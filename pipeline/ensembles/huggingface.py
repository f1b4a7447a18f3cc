"""Members made from Hugging Face models, or from one of them with adapters or dropout masks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import DropoutMask, Member
from pipeline.errors import ConfigError, DataError
from pipeline.huggingface.folder import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    ModelFolder,
    find_model,
)
from pipeline.huggingface.tokenizer_digest import tokenizer_sha256
from pipeline.run.files import digest, file_sha256

LOADER = "pipeline.huggingface.loader.load"
TOKENIZER = "pipeline.huggingface.loader.load_tokenizer"
# Settings that the probabilities of a member depend on.
_IN_RESULT = ("prompt", "source_language", "target_language")
# After a name on the hub.
_AT_COMMIT = re.compile(r"@[0-9a-f]{40}$")


def huggingface_members(name: str, settings: Mapping[str, Any]) -> list[Member]:
    """One member per model of `settings.models`, or one per adapter or mask of the only model.

    name: of the ensemble. Raises ConfigError if a folder does not exist or settings do not fit,
    DataError if a model cannot be read.
    """
    where = f"settings.models of ensemble {name}"
    models = [find_model(each, settings["allow_download"], where) for each in settings["models"]]
    adapters = [Path(adapter) for adapter in settings["adapters"]]
    n_mask = settings["members"]
    if adapters and n_mask is not None:
        raise ConfigError(
            f"settings.members of ensemble {name}: must be null if adapters is set (got {n_mask}). "
            f"Choose adapters or dropout masks."
        )
    for setting in ("adapters", "members"):
        if settings[setting] and len(models) != 1:
            raise ConfigError(
                f"{where}: must be one model if {setting} is set (got {len(models)}). Adapters and "
                f"dropout masks change one model."
            )
    if adapters:
        given = [str(adapter) for adapter in adapters]
        made = [_member(models[0], adapter, settings) for adapter in adapters]
        origins = _origins(models) * len(adapters)
    else:
        given = [model.name for model in models]
        made = [_member(model, None, settings) for model in models]
        origins = _origins(models)
    runs = _path_ends([_AT_COMMIT.sub("", each) for each in given])
    if len(set(runs)) < len(runs):  # one model in two commits
        runs = [f"{name}_{index}" for index in range(1, len(runs) + 1)]
    members = [
        replace(
            member,
            description={**member.description, "origin": origin},
            given=Path(folder),
            made_from=_made_from(run, member),
        )
        for member, folder, origin, run in zip(made, given, origins, runs, strict=True)
    ]
    if n_mask is not None:
        rate, seed = settings["rate"], settings["seed"]
        members = [
            replace(members[0], mask=DropoutMask(rate, seed + index)) for index in range(n_mask)
        ]
    return [replace(member, name=f"{name}_{index}") for index, member in enumerate(members, 1)]


def _origins(models: Sequence[ModelFolder]) -> list[str]:
    """What ensemble.json names the models: the end of their path, or NAME@COMMIT on the hub."""
    names = [model.name for model in models]
    ends = _path_ends(names)
    return [name if _AT_COMMIT.search(name) else end for name, end in zip(names, ends, strict=True)]


def _path_ends(paths: Sequence[str]) -> list[str]:
    """The shortest end of each path that tells it from the others: a/x and b/x, but y."""
    parts = [Path(path).absolute().parts for path in paths]
    ends = []
    for own in parts:
        others = [other for other in parts if other != own]
        lengths = range(1, len(own))
        unique = (n for n in lengths if all(other[-n:] != own[-n:] for other in others))
        ends.append("/".join(own[-next(unique, len(own)) :]))
    return ends


def _made_from(run: str, member: Member) -> dict[str, str]:
    """The weights of a member as `RUN/FILE`; tables name the run."""
    return {f"{run}/{path}": sha256 for path, sha256 in member.made_from.items()}


def _member(model: ModelFolder, adapter: Path | None, settings: Mapping[str, Any]) -> Member:
    """A member without a name."""
    hashes = {path: file_sha256(path) for path in (*model.weights, *model.others)}
    weights: Sequence[Path] = model.weights
    if adapter is not None:
        for file in (adapter / ADAPTER_CONFIG, adapter / ADAPTER_WEIGHTS):
            if not file.is_file():
                raise DataError(
                    f"{file}: no such file. Give the folder of an adapter in safetensors."
                )
            hashes[file] = file_sha256(file)
        weights = [adapter / ADAPTER_WEIGHTS]
    first = weights[0]
    files = {path: sha256 for path, sha256 in hashes.items() if path != first}
    description = {
        "model": {
            "_name": model.config.get("model_type"),
            "settings": {key: settings[key] for key in _IN_RESULT},
            "files": digest(*sorted((path.name, sha256) for path, sha256 in files.items())),
        },
        "vocabulary_sha256": tokenizer_sha256(model),
        "folder": str(model.path),
        "adapter": None if adapter is None else str(adapter),
    }
    return Member(
        "",
        first,
        hashes[first],
        None,
        description,
        made_from={path.name: hashes[path] for path in weights},
        loader=LOADER,
        files=files,
    )

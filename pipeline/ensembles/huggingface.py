"""Members made from Hugging Face models, and from one such model with several adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.ensembles.ensemble import Member
from pipeline.errors import ConfigError, DataError
from pipeline.huggingface.folder import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    ModelFolder,
    model_path,
    read_folder,
)
from pipeline.run.files import digest, file_sha256

LOADER = "pipeline.huggingface.loader.load"
TOKENIZER = "pipeline.huggingface.loader.load_tokenizer"
# Settings that the probabilities of a member depend on.
_IN_RESULT = ("prompt", "source_language", "target_language")


def huggingface_members(name: str, settings: Mapping[str, Any]) -> list[Member]:
    """One member per model of `settings.models`, or one per adapter of the only model.

    name: of the ensemble. Raises ConfigError if a folder does not exist or settings do not fit,
    DataError if a model cannot be read.
    """
    where = f"settings.models of ensemble {name}"
    download = settings["allow_download"], settings["revision"]
    folders = [read_folder(model_path(model, *download, where)) for model in settings["models"]]
    adapters = [Path(adapter) for adapter in settings["adapters"]]
    if adapters and len(folders) != 1:
        raise ConfigError(
            f"{where}: must be one model if adapters is set (got {len(folders)}). Adapters change "
            f"one model."
        )
    pairs: list[tuple[ModelFolder, Path | None]] = [(folder, None) for folder in folders]
    if adapters:
        pairs = [(folders[0], adapter) for adapter in adapters]
    return [
        _member(f"{name}_{index}", folder, adapter, settings)
        for index, (folder, adapter) in enumerate(pairs, 1)
    ]


def _member(
    name: str, folder: ModelFolder, adapter: Path | None, settings: Mapping[str, Any]
) -> Member:
    hashes = {path: file_sha256(path) for path in (*folder.weights, *folder.others)}
    weights: Sequence[Path] = folder.weights
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
    model = {
        "_name": folder.config.get("model_type"),
        "settings": {key: settings[key] for key in _IN_RESULT},
        "files": digest(*sorted((path.name, sha256) for path, sha256 in files.items())),
    }
    description = {
        "model": model,
        "vocabulary_sha256": folder.tokenizer_sha256,
        "folder": str(folder.path),
        "adapter": None if adapter is None else str(adapter),
        "revision": settings["revision"],
    }
    made_from = {f"{path.parent.name}/{path.name}": hashes[path] for path in weights}
    sha256 = hashes[first]
    return Member(
        name, first, sha256, None, description, None, made_from, loader=LOADER, files=files
    )

"""The folder of a Hugging Face model: where it is, and which of its files are read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, DataError
from pipeline.huggingface import import_transformers

CONFIG, ADAPTER_CONFIG = "config.json", "adapter_config.json"
WEIGHTS, ADAPTER_WEIGHTS = "model.safetensors", "adapter_model.safetensors"
_INDEX = f"{WEIGHTS}.index.json"
# Values of model_type whose sources are audio.
SPEECH_MODELS = ("whisper", "speech_to_text")
_COMMIT = re.compile(r"[0-9a-f]{40}")
TOKENIZER_CONFIG = "tokenizer_config.json"
# Files that say how text becomes token ids.
TOKENIZER_FILES = (
    *("tokenizer.json", "vocab.json", "target_vocab.json", "merges.txt", "vocab.txt"),
    *("source.spm", "target.spm", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
# All that a model is made of besides its weights.
_READ = (".json", ".txt", ".model", ".spm")
_DOWNLOADED = ["*.safetensors", *(f"*{suffix}" for suffix in _READ)]


@dataclass(frozen=True)
class ModelFolder:
    """A model: its configuration, its weights (all shards) and the other files that it reads.

    name: the folder as the settings give it, or on the hub with the commit: `NAME@COMMIT`.
    """

    name: str
    path: Path
    config: Mapping[str, Any]
    weights: Sequence[Path]
    others: Sequence[Path]


def find_model(name: str, allow_download: bool, where: str) -> ModelFolder:
    """The model in the folder `name`, or the download of `NAME@COMMIT` on the hub.

    Raises ConfigError naming the setting `where` if there is no such folder and downloads are not
    allowed, or if the name has no commit; DataError if the download fails, or if the model has no
    configuration or no safetensors, or needs code of its own.
    """
    path = Path(name)
    if path.is_dir():
        return _read_folder(name, path)
    if not allow_download:
        raise ConfigError(
            f"{where}: no such folder (got {name}). Give the folder of a model; for a name on the "
            f"hub, set allow_download=true."
        )
    repository, _, revision = name.partition("@")
    if not _COMMIT.fullmatch(revision):
        raise ConfigError(
            f"{where}: a name on the hub must end with @ and a commit of 40 hexadecimal digits "
            f"(got {name}). Copy it from the model's page."
        )
    hub = import_transformers("huggingface_hub")
    try:
        downloaded = hub.snapshot_download(
            repository, revision=revision, allow_patterns=_DOWNLOADED, ignore_patterns=["*/*"]
        )
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{where}: {name} cannot be downloaded ({reason}). Check the name, the commit and the "
            f"network."
        ) from None
    return _read_folder(name, Path(downloaded))


def _read_folder(name: str, path: Path) -> ModelFolder:
    """List the files of a model."""
    if not (path / CONFIG).is_file():
        raise DataError(
            f"{path}: no {CONFIG}. Give the folder of a model, as save_pretrained writes it."
        )
    config = read_json_file(path / CONFIG)
    if "auto_map" in config:
        raise DataError(
            f"{path / CONFIG}: auto_map names code that comes with the model, and such code is not "
            f"run (got {config['auto_map']}). Choose an architecture of transformers."
        )
    weights = [path / WEIGHTS]
    if (path / _INDEX).is_file():
        names = set(read_json_file(path / _INDEX)["weight_map"].values())
        weights = [path / name for name in sorted(names)]
    for file in weights:
        if not file.is_file():
            raise DataError(
                f"{file}: no such file. Only safetensors are read; save the model with "
                f"save_pretrained."
            )
    others = sorted(file for file in path.iterdir() if file.suffix in _READ)
    return ModelFolder(name, path, config, weights, others)


def read_json_file(path: Path) -> dict[str, Any]:
    """Read a JSON file of a model. Raises DataError if it is missing or damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Give a complete model.") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: must hold an object (got {content!r}). Give a complete model.")
    return content

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.fairseq_bridge.models.weights import save_weights
from pipeline.run.artifacts import write_manifest
from pipeline.run.settings import EnsembleConfig
from tests.artifacts import list_parts, made_by


@pytest.fixture
def train_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "train" / "nmt_ende"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def trained(train_folder: Path) -> Callable[..., Path]:
    """Return a function that writes the outputs of stage train for a seed."""

    def write(seed: int, weights: Mapping[str, bytes], **changes: Any) -> Path:
        part = train_folder / f"seed_{seed}"
        part.mkdir()
        for name, content in weights.items():
            (part / name).write_bytes(content)
        description = {
            "model": {},
            "seed": seed,
            "updates": 60,
            "vocabulary_sha256": "v",
            "weights": {
                name: hashlib.sha256(content).hexdigest() for name, content in weights.items()
            },
        }
        (part / "model.json").write_text(json.dumps(description | changes), encoding="utf-8")
        write_manifest(part, made_by("train"), [])
        list_parts(train_folder, "train")
        return part

    return write


@pytest.fixture
def checkpoints(tmp_path: Path) -> Callable[..., dict[str, bytes]]:
    """Return a function that makes checkpoints whose one tensor holds a value per update."""

    def make(values: Mapping[int, float]) -> dict[str, bytes]:
        files = {}
        for update, value in values.items():
            path = tmp_path / "checkpoint.safetensors"
            save_weights({"weight": torch.full((2,), value)}, path)
            files[f"update_{update:08d}.safetensors"] = path.read_bytes()
        return files

    return make


@pytest.fixture
def settings() -> Callable[..., EnsembleConfig]:
    def make(kind: str, *seeds: int, **values: Any) -> EnsembleConfig:
        return EnsembleConfig(name=kind, _target_="", seeds=list(seeds), settings=values)

    return make

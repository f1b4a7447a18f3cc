from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import EnsembleConfig
from pipeline.ensembles.random_init import members
from pipeline.errors import DataError


def train(folder: Path, seed: int, weights: bytes, **changes: Any) -> None:
    part = folder / f"seed_{seed}"
    part.mkdir(parents=True)
    (part / "average.safetensors").write_bytes(weights)
    description = {
        "model": {},
        "seed": seed,
        "vocabulary_sha256": "v",
        "weights": {"average.safetensors": hashlib.sha256(weights).hexdigest()},
    }
    (part / "model.json").write_text(json.dumps(description | changes), encoding="utf-8")


def manifest(folder: Path, *seeds: int) -> None:
    content = {f"seed_{seed}": "digest" for seed in seeds}
    for name in content:
        (folder / name).mkdir(exist_ok=True)
        part = {"digest": "digest", "file_bytes": {}}
        (folder / name / "part.json").write_text(json.dumps(part), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")


def ensemble(*seeds: int) -> EnsembleConfig:
    return EnsembleConfig(name="random_init", _target_="", seeds=list(seeds))


def test_one_member_a_seed_in_the_order_asked_for_and_no_stranger(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        train(tmp_path, seed, b"weights %d" % seed)
    manifest(tmp_path, 0, 1, 2)
    found = members(tmp_path, ensemble(2, 0))
    assert [(one.name, one.seed) for one in found] == [("seed_2", 2), ("seed_0", 0)]
    assert found[0].weights == tmp_path / "seed_2" / "average.safetensors"


def test_a_seed_that_the_manifest_does_not_list_is_refused(tmp_path: Path) -> None:
    train(tmp_path, 1, b"a")
    train(tmp_path, 2, b"b")
    manifest(tmp_path, 1)
    with pytest.raises(DataError, match=r"ensemble.seeds must be trained, got 2"):
        members(tmp_path, ensemble(1, 2))


def test_members_with_the_same_weights_are_refused_by_name(tmp_path: Path) -> None:
    train(tmp_path, 1, b"a")
    train(tmp_path, 2, b"a")
    manifest(tmp_path, 1, 2)
    with pytest.raises(DataError, match=r"different weights.*seed_1 and seed_2"):
        members(tmp_path, ensemble(1, 2))


def test_members_with_different_vocabularies_are_refused_by_name(tmp_path: Path) -> None:
    train(tmp_path, 1, b"a")
    train(tmp_path, 2, b"b", vocabulary_sha256="other")
    manifest(tmp_path, 1, 2)
    with pytest.raises(DataError, match=r"one vocabulary.*seed_1 and seed_2"):
        members(tmp_path, ensemble(1, 2))


def test_weights_that_are_not_those_that_were_written_are_refused(tmp_path: Path) -> None:
    train(tmp_path, 1, b"a")
    manifest(tmp_path, 1)
    file = tmp_path / "seed_1" / "average.safetensors"
    file.write_bytes(b"")
    with pytest.raises(DataError, match=r"sha256 of model\.json"):
        members(tmp_path, ensemble(1))
    file.unlink()
    with pytest.raises(DataError, match="no such weights"):
        members(tmp_path, ensemble(1))


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"seed": 1}'])
def test_a_damaged_description_is_named(tmp_path: Path, content: str) -> None:
    train(tmp_path, 1, b"a")
    manifest(tmp_path, 1)
    (tmp_path / "seed_1" / "model.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"model\.json must be JSON with model, seed"):
        members(tmp_path, ensemble(1))

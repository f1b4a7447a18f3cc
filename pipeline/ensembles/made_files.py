"""Weights that are made of other weights: once, whole or absent, outside the results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from pipeline.ensembles.member import Member
from pipeline.parts import file_sha256, whole_folder, write_json

WEIGHTS = "weights.safetensors"
_MADE = "made.json"


def made_folder(train_folder: Path) -> Path:
    """Where made weights of a task are kept; train_folder: {io.root}/train/{task}."""
    return train_folder.parents[1] / "resume" / "ensembles" / train_folder.name


def made(folder: Path, make: Callable[[Path], None]) -> dict[str, str]:
    """File name -> sha256 of what `make` writes into a folder, unless it is there and undamaged.

    `make` gets a temporary folder that takes its place when it is whole, so that a process that is
    killed leaves nothing that passes for it.
    """
    expected = _written(folder)
    if expected is not None and _hashes(folder) == expected:
        return expected
    with whole_folder(folder) as building:
        make(building)
        hashes = _hashes(building)
        write_json(building / _MADE, hashes)
    return hashes


def remove_unused(folder: Path, members: Iterable[Member]) -> None:
    """Delete what was made for other members than these."""
    used = {member.weights.parent for member in members}
    for path in folder.glob("*"):
        if path not in used:
            shutil.rmtree(path)


def _written(folder: Path) -> dict[str, str] | None:
    try:
        hashes: dict[str, str] = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return hashes


def _hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.iterdir() if path.name != _MADE)
    return {path.name: file_sha256(path) for path in sorted(files)}

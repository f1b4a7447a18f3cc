"""A folder of results that says what is in it and what it was made from, so that none is mixed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import DataError
from pipeline.parts import file_sha256, read_json, write_json

_MANIFEST = "manifest.json"

_log = logging.getLogger(__name__)


def seal(folder: Path, made_from: Mapping[str, str]) -> None:
    """Write manifest.json: sha256 of every file, and digest of every decode behind them."""
    files = {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in folder.rglob("*")
        if path.is_file()
    }
    write_json(folder / _MANIFEST, {"files": files, "made_from": dict(made_from)})


def check_seal(folder: Path, made_from: Mapping[str, str]) -> None:
    """Refuse a folder {stage}/{task} of which a file is another, or that is of other decodes.

    made_from: part -> digest of the decodes that are there. Raises DataError naming file and stage.
    Without a manifest, as where another program wrote the folder, a warning says that it is taken
    as it is.
    """
    path, stage = folder / _MANIFEST, folder.parent.name
    if not path.exists():
        _log.warning("%s is not there: whether its folder is whole is not known", path)
        return
    sealed = read_json(path, stage)
    again = f"run python -m stages.{stage} again"
    if not all(isinstance(sealed.get(name), dict) for name in ("files", "made_from")):
        raise DataError(f"{path} must have files and made_from, got a damaged file: {again}")
    for name, written in sealed["files"].items():
        found = file_sha256(folder / name) if (folder / name).is_file() else "no file"
        if found != written:
            raise DataError(f"{folder / name} must have the sha256 {written}, got {found}: {again}")
    other = [part for part in made_from if sealed["made_from"].get(part) != made_from[part]]
    if other:
        raise DataError(
            f"{folder} must be made from the decodes that are there, got older ones or none of "
            f"{', '.join(other)}: {again}"
        )


def sealed_file(folder: Path, name: str) -> Path:
    """A file of a folder {stage}/{task}: DataError where its manifest says that it is another.

    Where there is no manifest, or it does not list the file, it is taken as it is.
    """
    path, manifest = folder / name, folder / _MANIFEST
    if not manifest.is_file():
        return path
    stage = folder.parent.name
    files = read_json(manifest, stage).get("files")
    written = files.get(name) if isinstance(files, dict) else None
    found = file_sha256(path) if path.is_file() else "no file"
    if written not in (None, found):
        raise DataError(
            f"{path} must have the sha256 that stage {stage} wrote down, {written}, got {found}: "
            f"run python -m stages.{stage} again"
        )
    return path

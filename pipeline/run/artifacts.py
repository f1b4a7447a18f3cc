"""A folder of results that says what is in it and what it was made from, so that none is mixed."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import DataError
from pipeline.run.files import complete_folder, file_sha256, read_json, write_json

_MANIFEST = "manifest.json"
_PART = "part.json"


class PartFolder:
    """The parts that a folder should hold: name -> digest of settings and inputs.

    beside: files that the stage itself puts there.
    """

    def __init__(self, root: Path, parts: Mapping[str, str], beside: Collection[str] = ()) -> None:
        self.root = root
        self.parts = dict(parts)
        self._own = {*parts, *beside, _MANIFEST}

    def missing(self) -> list[str]:
        """Names of the parts that are not there or not whole, or were made from something else."""
        return _not_made(self.root, self.parts)

    @contextmanager
    def building(self, name: str) -> Iterator[Path]:
        """A temporary folder that becomes part `name` when the block ends without error."""
        with complete_folder(self.root / name) as folder:
            yield folder
            made = {"digest": self.parts[name], "name": name, "file_bytes": _file_bytes(folder)}
            write_json(folder / _PART, made)

    def write_manifest(self) -> None:
        """Delete what does not belong here and list the parts; DataError if one is missing.

        Whoever reads the parts at this moment finds a manifest: the old one or the new.
        """
        missing = self.missing()
        if missing:
            raise DataError(f"{self.root}: parts must all be made, missing {', '.join(missing)}")
        self.root.mkdir(parents=True, exist_ok=True)  # where there is no part to make
        for path in self.root.iterdir():
            if path.name in self._own:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        write_json(self.root / _MANIFEST, self.parts)


def read_manifest(root: Path) -> dict[str, str]:
    """Name -> digest of the parts of a folder.

    Raises DataError where there is no manifest, or where it does not list the parts that are there,
    as they are: a run that was to replace the parts did not end, or a file was lost.
    """
    stage = root.parent.name
    manifest: dict[str, str] = read_json(root / _MANIFEST, stage)
    there = {path.parent.name for path in root.glob(f"[!.]*/{_PART}")}
    other = [*_not_made(root, manifest), *sorted(there - manifest.keys())]
    if other:
        raise DataError(
            f"{root} must hold the parts of its manifest, got others or damaged ones for "
            f"{', '.join(other)}: run python -m stages.{stage} again"
        )
    return manifest


def _not_made(root: Path, parts: Mapping[str, str]) -> list[str]:
    return [name for name, expected in parts.items() if _made_from(root / name) != expected]


def _made_from(part: Path) -> str | None:
    try:
        made = json.loads((part / _PART).read_text(encoding="utf-8"))
        # A cut or a missing file is found by its size; reading all weights would take minutes.
        whole = made["file_bytes"].items() <= _file_bytes(part).items()
        return str(made["digest"]) if whole else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _file_bytes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.name != _PART
    }


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

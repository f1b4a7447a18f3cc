"""Artifacts: the folders that stages write. Each is complete or absent and has one manifest.

Every artifact holds a `manifest.json` with the same keys:

| key | content |
|---|---|
| stage | the stage that wrote it |
| code | digest of the sources that made it |
| settings | digest of the settings that its content depends on |
| made_from | input -> digest: prepared files, members, parts of other artifacts |
| digest | sha256 of the four above and of `parts`; known before the artifact is made |
| files | name -> `bytes` and `sha256`, which is null for files that are not hashed |
| parts | name -> digest, for a folder of parts; otherwise empty |
| description | what the stage says about the content (counts, reasons); otherwise empty |

A part (one trained member, one decoded store) is an artifact inside a folder of parts. Its digest
tells whether it can be kept when a run is resumed. The files of parts are checked by size only,
since hashing checkpoints and stores takes minutes at the size of the paper: model.json holds the
hashes of the weights, which are checked when members are loaded, and stores are validated when they
are opened. Every other file is hashed.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipeline.errors import DataError
from pipeline.run.files import (
    complete_folder,
    digest,
    file_sha256,
    read_json,
    remove,
    run_again,
    write_json,
)

_log = logging.getLogger(__name__)
_MANIFEST = "manifest.json"
# Names of what a killed run was writing.
_LEFT_OVER = re.compile(r"\..+\.(building|replaced|writing|\d+)")
_MOST_NAMES = 10  # in a line of the log
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Provenance:
    """The origin of an artifact.

    code, settings: digests; made_from: input -> digest.
    """

    stage: str
    code: str
    settings: str
    made_from: Mapping[str, str]

    @property
    def digest(self) -> str:
        """sha256 (hex) of all fields. Equal digests mean equal results."""
        return _digest_of(_plain(self))


def _plain(provenance: Provenance) -> dict[str, Any]:
    return vars(provenance) | {"made_from": dict(provenance.made_from)}


def _digest_of(manifest: Mapping[str, Any]) -> str:
    names = ("stage", "code", "settings", "made_from")
    return digest(*(manifest[name] for name in names), manifest.get("parts", {}))


@contextmanager
def new_artifact(folder: Path, provenance: Provenance, *, hashed: bool = True) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` if the block ends without an error.

    Its manifest is written at the end of the block. Files that are not the stage's own are kept.
    """
    with artifact_folder(folder) as temporary:
        yield temporary
        write_manifest(temporary, provenance, hashed=hashed)


@contextmanager
def artifact_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces an artifact if the block ends without an error.

    The block writes the manifest. Files of the old folder that its manifest does not list are the
    user's: they are kept, unless the block writes files of these names, and logged.
    """
    with complete_folder(folder) as temporary:
        yield temporary
        kept = [name for name in _own_names(folder) if not (temporary / name).exists()]
        for name in kept:
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / name, temporary / name, follow_symlinks=False)
        _log_kept(folder, kept)


def _names(folder: Path) -> list[str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return [path.relative_to(folder).as_posix() for path in paths]


def _own_names(folder: Path) -> list[str]:
    """Names of the files of an artifact that are the user's, and not those of a stage."""
    listed = {*_listed(folder), _MANIFEST}
    return [
        name
        for name in _names(folder)
        if name not in listed and not any(map(_LEFT_OVER.fullmatch, Path(name).parts))
    ]


def _listed(folder: Path) -> set[str]:
    """Names of the files in the manifest of a folder; empty if it is missing or damaged."""
    try:
        return {*json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return set()


def _log_kept(folder: Path, names: Sequence[str]) -> None:
    if names:
        shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
        _log.info("%s: kept %d files that no stage made (%s)", folder, len(names), shown)


def write_manifest(
    folder: Path,
    provenance: Provenance,
    names: Iterable[str] | None = None,
    *,
    parts: Mapping[str, str] = _NOTHING,
    description: Mapping[str, Any] = _NOTHING,
    hashed: bool = True,
) -> None:
    """Write the manifest of a folder, as the last step: a folder with a manifest is complete.

    names: the files that the manifest lists, by default all; parts: name -> digest.
    """
    names = _names(folder) if names is None else names
    files = {name: _entry(folder / name, hashed) for name in names}
    content = _plain(provenance)
    content |= {"files": files, "parts": dict(parts), "description": dict(description)}
    write_json(folder / _MANIFEST, content | {"digest": _digest_of(content)})


def _entry(path: Path, hashed: bool) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_sha256(path) if hashed else None}


class Artifact:
    """A folder that stage `stage` wrote, read through its manifest.

    Raises DataError if the manifest is missing or damaged. With `required=False` a folder without a
    manifest, such as one that another program wrote, is accepted unchecked, with a warning. So is
    a folder that does not exist, which is empty.
    """

    def __init__(self, folder: Path, stage: str, *, required: bool = True) -> None:
        self.folder = folder
        self.stage = stage
        self._manifest: dict[str, Any] | None = None
        path = folder / _MANIFEST
        if required or path.exists():
            self._manifest = _read_manifest(path, stage)
        elif folder.exists():
            _log.warning("%s: no such file, so the content of its folder is not checked", path)

    @property
    def digest(self) -> str | None:
        """Digest of what the artifact is made from; None without a manifest."""
        return None if self._manifest is None else self._manifest["digest"]

    @property
    def as_input(self) -> dict[str, str]:
        """Entry in `made_from` of what is made from this artifact; empty without a manifest."""
        return {} if self.digest is None else {f"{self.stage}/{self.folder.name}": self.digest}

    @property
    def description(self) -> dict[str, Any]:
        """The description of the content by the stage; empty without a manifest."""
        return {} if self._manifest is None else dict(self._manifest["description"])

    def names(self, prefix: str = "", suffix: str = "") -> list[str]:
        """Names of the files, relative to the folder, in order."""
        if self._manifest is not None:
            names = sorted(self._manifest["files"])
        else:
            names = _names(self.folder)
        return [name for name in names if name.startswith(prefix) and name.endswith(suffix)]

    def sha256(self, name: str) -> str:
        """Hash of a file as it was written."""
        entry = {} if self._manifest is None else self._manifest["files"].get(name, {})
        return entry.get("sha256") or file_sha256(self.file(name))

    def file(self, name: str) -> Path:
        """Path of a file. Raises DataError if it is missing, not listed, or has changed."""
        path = self.folder / name
        if not path.is_file():
            raise DataError(f"{path}: no such file. {run_again(self.stage)}")
        if self._manifest is None:
            return path
        entry = self._manifest["files"].get(name)
        if entry is None:
            raise DataError(f"{path}: not listed in {_MANIFEST}. {run_again(self.stage)}")
        actual = _entry(path, hashed=entry["sha256"] is not None)
        if actual != entry:
            raise DataError(
                f"{path}: changed since stage {self.stage} wrote it "
                f"({_words(actual)}, expected {_words(entry)}). {run_again(self.stage)}"
            )
        return path

    def check(self, made_from: Mapping[str, str] = _NOTHING) -> None:
        """Raise DataError if a file has changed, or if the artifact was made from other inputs."""
        if self._manifest is None:
            return
        for name in self._manifest["files"]:
            self.file(name)
        recorded = self._manifest["made_from"]
        outdated = [name for name, value in made_from.items() if recorded.get(name) != value]
        if outdated:
            raise DataError(
                f"{self.folder}: not made from the current {', '.join(outdated)}. "
                f"{run_again(self.stage)}"
            )

    def parts(self) -> dict[str, str]:
        """Digest of each part. Raises DataError if a part is missing, damaged or unexpected."""
        parts: dict[str, str] = {} if self._manifest is None else dict(self._manifest["parts"])
        unexpected = {
            path.name
            for path in self.folder.iterdir()
            if not path.name.startswith(".") and (path / _MANIFEST).exists()
        } - parts.keys()
        wrong = [*_incomplete(self.folder, self.stage, parts), *sorted(unexpected)]
        if wrong:
            raise DataError(
                f"{self.folder}: parts are missing, damaged or not in {_MANIFEST} "
                f"({', '.join(wrong)}). {run_again(self.stage)}"
            )
        return parts


def _words(entry: Mapping[str, Any]) -> str:
    return f"{entry['bytes']} bytes, sha256 {entry['sha256']}"


def _read_manifest(path: Path, stage: str) -> dict[str, Any]:
    manifest: dict[str, Any] = read_json(path, stage)
    try:
        if manifest["digest"] != _digest_of(manifest):
            raise ValueError("its digest does not match its content")
        if manifest["stage"] != stage:
            raise ValueError(f"written by stage {manifest['stage']}")
        if not all(entry.keys() == {"bytes", "sha256"} for entry in manifest["files"].values()):
            raise ValueError("an entry of files without bytes and sha256")
        dict(manifest["parts"])
        dict(manifest["description"])
    except KeyError as error:
        raise _not_a_manifest(path, stage, f"no {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise _not_a_manifest(path, stage, str(error)) from None
    return manifest


def _not_a_manifest(path: Path, stage: str, reason: str) -> DataError:
    return DataError(f"{path}: not a manifest of stage {stage} ({reason}). {run_again(stage)}")


def _incomplete(root: Path, stage: str, parts: Mapping[str, str]) -> list[str]:
    """Names of the parts that are missing or damaged, or made from other inputs."""
    return [name for name, value in parts.items() if not _has_digest(root / name, stage, value)]


def is_complete(folder: Path, provenance: Provenance) -> bool:
    """Whether a folder is undamaged and its provenance is exactly this one."""
    return _has_digest(folder, provenance.stage, provenance.digest)


def _has_digest(folder: Path, stage: str, expected: str) -> bool:
    try:
        artifact = Artifact(folder, stage)
        artifact.check()
    except DataError:
        return False
    return artifact.digest == expected


def made_once(folder: Path, provenance: Provenance, make: Callable[[Path], None]) -> Artifact:
    """Return the artifact at `folder`; let `make` fill it if it is not complete."""
    if not is_complete(folder, provenance):
        with new_artifact(folder, provenance) as temporary:
            make(temporary)
    return Artifact(folder, provenance.stage)


class PartFolder:
    """A folder of parts that a stage makes side by side and resumes by their digests.

    parts: name -> what the part is made from; beside: JSON files (name -> content) of the folder
    itself.
    """

    def __init__(
        self,
        root: Path,
        stage: str,
        parts: Mapping[str, Provenance],
        beside: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self.root = root
        self.stage = stage
        self.beside = beside
        self.parts = {name: provenance.digest for name, provenance in parts.items()}
        self._provenance = dict(parts)

    def missing(self) -> list[str]:
        """Names of the parts that are missing or damaged, or made from other inputs."""
        return _incomplete(self.root, self.stage, self.parts)

    @contextmanager
    def building(self, name: str) -> Iterator[Path]:
        """Yield a temporary folder that becomes part `name` if the block ends without an error."""
        with new_artifact(self.root / name, self._provenance[name], hashed=False) as folder:
            yield folder

    def write_manifest(self) -> None:
        """Write the files beside the parts and the manifest, and delete what an older run made.

        Files that no stage made are kept and logged. Readers find the old manifest or the new one
        at every moment. Raises DataError if a part is missing.
        """
        missing = self.missing()
        if missing:
            raise DataError(
                f"{self.root}: parts are missing ({', '.join(missing)}). {run_again(self.stage)}"
            )
        self.root.mkdir(parents=True, exist_ok=True)
        self._remove_old()
        for name, content in self.beside.items():
            write_json(self.root / name, content)
        write_manifest(self.root, self._combined(), self.beside, parts=self.parts)

    def _remove_old(self) -> None:
        kept, listed = [], _listed(self.root)
        for path in sorted(self.root.iterdir()):
            if path.name in {*self.parts, *self.beside, _MANIFEST}:
                continue
            is_part = (path / _MANIFEST).is_file()
            own = [f"{path.name}/{name}" for name in _own_names(path)] if is_part else []
            if own:
                for name in (*_listed(path), _MANIFEST):
                    (path / name).unlink(missing_ok=True)
                kept += own
            elif is_part or path.name in listed or _LEFT_OVER.fullmatch(path.name):
                remove(path)
            else:
                kept.append(path.name)
        _log_kept(self.root, kept)

    def _combined(self) -> Provenance:
        """The provenance of all parts together."""
        provenance = [self._provenance[name] for name in sorted(self.parts)]
        made_from = {name: sha256 for part in provenance for name, sha256 in part.made_from.items()}
        codes = sorted({part.code for part in provenance})
        return Provenance(
            self.stage,
            codes[0] if len(codes) == 1 else digest(codes),
            digest([part.settings for part in provenance]),
            made_from,
        )

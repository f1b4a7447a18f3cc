"""The prepared data of a task, as stage prepare left it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.data.units import CODES_FILE, MODEL_FILE
from pipeline.errors import DataError
from pipeline.parts import file_sha256, read_json


@dataclass(frozen=True)
class Prepared:
    """A folder {io.root}/prepare/{task}; languages: of the task's source and target."""

    folder: Path
    source_language: str
    target_language: str

    def absent_sets(self) -> dict[str, str]:
        """Test sets that could not be prepared, each with the reason."""
        absent: dict[str, str] = self._manifest().get("absent_sets", {})
        return absent

    def has(self, name: str) -> bool:
        """Whether a file was prepared."""
        return name in self._manifest()["files"]

    def file(self, name: str) -> Path:
        """A prepared file; DataError where it is not as it was written, or missing."""
        path = _existing(self.folder / name)
        written, found = self._manifest()["files"].get(name), file_sha256(path)
        if found != written:
            raise DataError(
                f"{path} must have the sha256 that stage prepare wrote down, {written}, "
                f"got {found}: run python -m stages.prepare again"
            )
        return path

    def test_set(self, role: str) -> Path:
        """The sentences of a test set."""
        return self.file(f"test/{role}.jsonl")

    def test_set_files(self, role: str) -> list[Path]:
        """All that a test set is: its sentences and, of speech, their features."""
        names = [f"test/{role}.jsonl", f"test/{role}.h5"]
        return [self.file(names[0]), *(self.file(one) for one in names[1:] if self.has(one))]

    @property
    def units(self) -> Path:
        """The sub-word units: a sentencepiece model or BPE codes."""
        return self.folder / (CODES_FILE if self.has(CODES_FILE) else MODEL_FILE)

    def dictionaries(self) -> tuple[Path, Path]:
        """The vocabularies of source and target."""
        return (
            self.file(f"fairseq/dict.{self.source_language}.txt"),
            self.file(f"fairseq/dict.{self.target_language}.txt"),
        )

    def _manifest(self) -> Mapping[str, Any]:
        path = self.folder / "manifest.json"
        manifest: dict[str, Any] = read_json(path, "prepare")
        if not isinstance(manifest.get("files"), dict):
            raise DataError(
                f"{path} must list the files, got none: run python -m stages.prepare again"
            )
        return manifest


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    return path

"""Artifacts that tests make by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.run.artifacts import Provenance, write_manifest


def made_by(stage: str, settings: str = "settings", **made_from: str) -> Provenance:
    """Provenance of an artifact that a test makes."""
    return Provenance(stage, "code", settings, made_from)


def list_parts(folder: Path, stage: str) -> None:
    """Write the manifest of a folder whose parts have manifests of `list_files`."""
    parts = {path.parent.name: made_by(stage).digest for path in folder.glob("*/manifest.json")}
    write_manifest(folder, made_by(stage), [], parts=parts)


def list_files(folder: Path, stage: str, description: Mapping[str, Any] | None = None) -> None:
    """Write a manifest that lists the files of a folder as they are now."""
    (folder / "manifest.json").unlink(missing_ok=True)
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    write_manifest(folder, made_by(stage), names, description=description or {})

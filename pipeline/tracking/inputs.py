"""What a run worked on, as MLflow's datasets: the training data, or the test sets."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pipeline.parts import digest, read_json

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

_DIGEST_LENGTH = 36  # MLflow's limit


def datasets(prepared: Path, stage: str) -> list[DatasetInput]:
    """The datasets of a folder of `prepare`: stage train has the training data, others test sets.

    Each with the hash of its files; none where nothing is prepared.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    place, context = ("fairseq", "training") if stage == "train" else ("test", "evaluation")
    return [
        DatasetInput(
            Dataset(
                name=f"{prepared.name} {name}",
                digest=digest(hashes)[:_DIGEST_LENGTH],
                source_type="local",
                source=json.dumps({"prepare": prepared.name, "files": sorted(hashes)}),
            ),
            [InputTag("mlflow.data.context", context)],
        )
        for name, hashes in _hashes(prepared / "manifest.json", place).items()
        if place == "test" or name == "train"
    ]


def _hashes(manifest: Path, place: str) -> dict[str, dict[str, str]]:
    """Name of a set -> file -> sha256, of the files of a manifest that lie in `place`."""
    if not manifest.is_file():
        return {}
    files = read_json(manifest, "prepare").get("files", {})
    sets: dict[str, dict[str, str]] = defaultdict(dict)
    for path, sha256 in files.items():
        folder, _, name = path.partition("/")
        if folder == place:
            sets[PurePosixPath(name).name.partition(".")[0]][path] = sha256
    return dict(sets)

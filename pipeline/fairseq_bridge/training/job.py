"""What a trainer gets: one member to train."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.run.files import write_json


@dataclass(frozen=True)
class TrainJob:
    """Where to read and write, the seed, and the groups model and train as plain values.

    `family` is task.family; the vocabulary is dict.{target_language}.txt in `data`.
    """

    title: str
    data: Path
    out: Path
    resume: Path
    seed: int
    source_language: str
    target_language: str
    model: Mapping[str, Any]
    train: Mapping[str, Any]
    family: str = "translation"

    def write(self, path: Path) -> None:
        """Write the job as JSON, for another process."""
        content = asdict(self) | {name: str(getattr(self, name)) for name in _PATHS}
        write_json(path, content)


_PATHS = ("data", "out", "resume")


def read_job(path: Path) -> TrainJob:
    """The job of a file that `TrainJob.write` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return TrainJob(**content | {name: Path(content[name]) for name in _PATHS})

"""Whether the folders that the user points to hold the paper's corpora."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.config import DataConfig, TaskConfig
from pipeline.data.paper_sizes import TEST_SETS, TRAINING, PaperCorpus
from pipeline.errors import DataError

_TOLERANCE = 0.01
_TRAINING_TOLERANCE = 0.25  # the paper counts before its cleaning, or after: it does not say


def check_present(data: DataConfig, task: TaskConfig) -> None:
    """Raise DataError, naming key, path, corpus and publisher, of every corpus that is missing."""
    missing = [
        f"{key} ({path}): {corpus.name}, {corpus.sentences:,} sentences, of {corpus.published}"
        for key, path, corpus in _needed(data, task)
        if not any(one.exists() for one in _places(path, task))
    ]
    if missing:
        raise DataError(
            f"data.check_paper_sizes needs the paper's corpora, got nothing at {'; '.join(missing)}"
        )


def size_differences(task_name: str, counts: Mapping[str, Any]) -> list[str]:
    """A sentence for each set whose size is not the paper's; counts: those of a manifest."""
    found = []
    for name, size, corpus, tolerance in _sizes(task_name, counts):
        if abs(size - corpus.sentences) > tolerance * corpus.sentences:
            found.append(
                f"{name} has {size:,} sentences where the paper's {corpus.name} has "
                f"{corpus.sentences:,}: see {corpus.published}"
            )
    return found


def _needed(data: DataConfig, task: TaskConfig) -> Iterator[tuple[str, str, PaperCorpus]]:
    if task.family == "translation":
        yield "data.train", str(data.train), TRAINING[task.name]
        if data.librispeech is not None:
            yield "data.librispeech", data.librispeech, TEST_SETS["LTC"]
        if data.khresmoi is not None:
            yield "data.khresmoi", data.khresmoi, TEST_SETS["MED"]
        return
    speech = data.speech
    for path in speech.train:
        yield "data.speech.train", path, TRAINING[task.name]
    given = {
        "test": (speech.test, "LTC"),
        "test_other": (speech.test_other, "LTO"),
        "ami": (speech.ami, "AMI"),
        "common_voice": (speech.common_voice, "C-FR"),
    }
    for key, (place, role) in given.items():
        if place is not None:
            yield f"data.speech.{key}", place, TEST_SETS[role]


def _places(path: str, task: TaskConfig) -> list[Path]:
    """The path itself, or the source side of parallel text."""
    language = task.source_language
    texts = (path, path.replace("{lang}", language), f"{path}.{language}", f"{path}.{language}.gz")
    return [Path(text) for text in texts]


def _sizes(
    task_name: str, counts: Mapping[str, Any]
) -> Iterator[tuple[str, int, PaperCorpus, float]]:
    """Set, its size as prepared, the paper's, and how far apart they may be."""
    if "test_sets" in counts:
        sizes = {role: one["rows"] for role, one in counts["test_sets"].items()}
        sizes["train"] = counts["split"]["train"]
    else:
        sizes = {name: one["utterances_read"] for name, one in counts.items()}
    for name, size in sizes.items():
        if name == "train":
            yield name, size, TRAINING[task_name], _TRAINING_TOLERANCE
        elif name in TEST_SETS:
            yield name, size, TEST_SETS[name], _TOLERANCE

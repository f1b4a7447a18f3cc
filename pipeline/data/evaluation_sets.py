"""The test and dev sets of a task: rows of text and pieces, each set made by its kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.config import TaskConfig, TestSetConfig
from pipeline.data.corpus import AlignedSentence
from pipeline.data.corrupt import permute
from pipeline.data.units import Units, detokenise
from pipeline.errors import ConfigError, DataError


@dataclass(frozen=True)
class Row:
    """One sentence of a set; `reference` and its pieces are None where there is no translation."""

    id: int
    source: str
    reference: str | None
    source_pieces: list[str]
    reference_pieces: list[str] | None


@dataclass(frozen=True)
class HeldOutText:
    """What a set is made from: held-out sentences of a task, its units, the seed."""

    sentences: Sequence[AlignedSentence]
    task: TaskConfig
    units: Units
    seed: int


def languages_needed(task: TaskConfig) -> set[str]:
    """The languages that the sides and the test sets of a task are in.

    Raises ConfigError where a test set that is another language's side names no language.
    """
    languages = {task.source_language, task.target_language}
    for role, test_set in task.test_sets.items():
        if test_set.language is not None:
            languages.add(test_set.language)
        elif test_set.kind == "other_side":
            raise ConfigError(
                f"task.test_sets.{role}.language must be given for kind other_side, got null"
            )
    return languages


def make_set(role: str, test_set: TestSetConfig, held_out: HeldOutText) -> list[Row]:
    """The rows of one test set; DataError where no sentence is left."""
    rows = list(_KINDS[test_set.kind](test_set, held_out))
    if not rows:
        raise DataError(
            f"test set {role} ({test_set.kind}) must hold a sentence, got none of "
            f"{len(held_out.sentences)} held-out ones"
        )
    return rows


def parallel_rows(held_out: HeldOutText, source_language: str) -> Iterator[Row]:
    """Rows with the text in `source_language` as source and the task's target as reference."""
    for number, sentence in enumerate(held_out.sentences):
        source = sentence.text[source_language]
        reference = sentence.text[held_out.task.target_language]
        units = held_out.units
        yield Row(number, source, reference, units.pieces(source), units.pieces(reference))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a set, one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def read_rows(path: Path) -> list[Row]:
    """The rows of a set as `write_rows` left them; DataError where the file is missing."""
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    with path.open(encoding="utf-8", newline="\n") as file:
        return [Row(**json.loads(line)) for line in file]


def _held_out(_: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    yield from parallel_rows(held_out, held_out.task.source_language)


def _other_side(test_set: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    assert test_set.language is not None  # languages_needed has checked it
    yield from parallel_rows(held_out, test_set.language)


def _permuted(_: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    number = 0
    for row in parallel_rows(held_out, held_out.task.source_language):
        pieces = permute(row.source_pieces, held_out.seed, row.id)
        if pieces is not None:
            yield Row(number, detokenise(pieces), None, pieces, None)
            number += 1


_KINDS: dict[str, Callable[[TestSetConfig, HeldOutText], Iterator[Row]]] = {
    "held_out": _held_out,
    "permuted": _permuted,
    "other_side": _other_side,
}

"""The cells of all tasks: read, and looked up by the keys of the paper's tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, Cell, Key

_NUMBERS = ("value", "spread", "low", "high")
_COLUMNS = tuple(one.name for one in fields(Cell))

# How an absent cell is told, by the first part of its key that no cell of the run has.
_WHY_ABSENT = {
    "task": "task {task} was not run",
    "test_set": "test set {test_set} is not part of this run of {task}",
    "ensemble": "{test_set} was not decoded by {ensemble}",
    "regime": "{test_set} has no decode of regime {regime}",
    "hypotheses": "{test_set} has no decode of combination {hypotheses}",
    "metric": "{metric} was not computed for {test_set}",
    "column": "{column} was not computed for {test_set}",
    "length_norm": "length_norm = {length_norm} is not in the uncertainty grid of this run",
    "B": "B = {B} is not in the uncertainty grid of this run",
    "T": "T = {T} is not in the uncertainty grid of this run",
}


def read_cells(paths: Iterable[Path]) -> pd.DataFrame:
    """The cells of several files, one row a cell: numbers as floats (NaN: absent), else text.

    Raises DataError for a file that is no such table.
    """
    frames = []
    for path in paths:
        try:
            frames.append(_read(path))
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path} must have the columns {', '.join(_COLUMNS)}, "
                f"got {reason}: run python -m stages.metrics again"
            ) from None
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_COLUMNS)


def _read(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, lineterminator="\n")
    if tuple(frame.columns) != _COLUMNS:
        raise ValueError(", ".join(frame.columns))
    if frame.isna().any(axis=None) or not path.read_bytes().endswith(b"\n"):
        raise ValueError("a line that breaks off")
    for name in _NUMBERS:
        frame[name] = pd.to_numeric(frame[name])
    frame["n"] = frame["n"].astype(int)
    return frame


class CellIndex:
    """Cells by key; a test set answers to the other names of its role too.

    Single models are averages of checkpoints: where those were not decoded as an ensemble of their
    own, the cells of single models answer for them.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        cells = [_cell(row) for row in frame.to_dict("records")]
        self.cells = [cell for cell in cells if cell.regime != "-"]
        self._by_key = {one.key: one for cell in self.cells for one in _named(cell)}
        for cell in list(self._by_key.values()):
            if cell.ensemble == "single":
                average = replace(cell, ensemble=CHECKPOINT_AVERAGE)
                self._by_key.setdefault(average.key, average)
        self._why_no_set = {
            (one.task, one.test_set): one.reason
            for cell in cells
            if cell.regime == "-"
            for one in _named(cell)
        }
        self._ensembles: dict[str, list[str]] = {}
        for task, ensemble in dict.fromkeys((cell.task, cell.ensemble) for cell in self.cells):
            self._ensembles.setdefault(task, []).append(ensemble)
        # Tables ask some thousand times for the keys of a cell's like, by the same parts.
        self._by_parts = cache(self._grouped_by)

    @property
    def tasks(self) -> list[str]:
        """The tasks that have cells."""
        return list(self._ensembles)

    def keys(self, **wanted: str) -> list[Key]:
        """The keys, aliases included, whose named parts have the wanted values."""
        return self._by_parts(*wanted).get(tuple(wanted.values()), [])

    def _grouped_by(self, *names: str) -> Mapping[tuple[str, ...], list[Key]]:
        groups = defaultdict(list)
        for key in self._by_key:
            groups[tuple(getattr(key, name) for name in names)].append(key)
        return groups

    def ensemble(self, task: str, of_paper: str) -> str:
        """The paper's ensemble where the run of a task has it, else the run's own."""
        single = ("single", CHECKPOINT_AVERAGE)
        own = [one for one in self._ensembles.get(task, ()) if one not in single]
        return of_paper if of_paper in own or not own else own[0]

    def cell(self, key: Key) -> Cell:
        """The cell of a key, or one without a value that says why."""
        found = self._by_key.get(key)
        return found or Cell(**key._asdict(), reason=self._why_absent(key))

    def _why_absent(self, key: Key) -> str:
        if (key.task, key.test_set) in self._why_no_set:
            return f"no such set: {self._why_no_set[key.task, key.test_set]}"
        left = list(self._by_key)
        for name, sentence in _WHY_ABSENT.items():
            left = [one for one in left if getattr(one, name) == getattr(key, name)]
            if not left:
                return sentence.format(**key._asdict())
        raise AssertionError(f"{key} is there")


def _named(cell: Cell) -> list[Cell]:
    """The cell under each name of its test set."""
    return [cell, *(replace(cell, test_set=name) for name in cell.also_called.split())]


def _cell(row: dict[Any, Any]) -> Cell:
    numbers = {name: None if pd.isna(row[name]) else float(row[name]) for name in _NUMBERS}
    return Cell(**{**row, **numbers, "n": int(row["n"])})

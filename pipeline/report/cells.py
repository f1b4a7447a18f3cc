"""Read the cells of all tasks, and look them up by the keys of the paper's tables."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, Cell, Key
from pipeline.report.ensemble_names import ensemble_name
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

_log = logging.getLogger(__name__)

_KENDALL = "kendall_"  # only comparisons with external scores have metrics with this start
_NUMBERS = ("value", "spread", "low", "high")
_COUNTS = ("n", "groups", "members")
_COLUMNS = tuple(field.name for field in fields(Cell))

_REGIMES = {
    "beam": "beam search",
    "greedy": "greedy search",
    "sample": "sampling",
    "teacher_forcing": "teacher forcing",
}
# Why a cell is absent, by the first part of its key that no cell of the run has.
_WHY_ABSENT = {
    "task": "task {task} was not run",
    "test_set": "test set {test_set} is not part of this run of {task}",
    "ensemble": "{test_set} was not decoded by {ensemble}",
    "regime": "{test_set} has no decode by {regime}",
    "hypotheses": "{test_set} has no decode by {hypotheses}",
    "metric": "{metric} was not computed for {test_set}",
    "column": "{column} was not computed for {test_set}",
    "length_norm": "length_norm = {length_norm} is not in the uncertainty grid of this run",
    "B": "B = {B} is not in the uncertainty grid of this run",
    "T": "T = {T} is not in the uncertainty grid of this run",
}


def tasks_with_cells(folder: Path, tasks: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """The tasks that have a folder {folder}/{task}; a warning names the `tasks` that have none.

    `others` are included if they have one. Raises DataError if none of the `tasks` has.
    """
    absent = [task for task in tasks if not (folder / task).is_dir()]
    if len(absent) == len(tasks):
        raise DataError(
            f"{folder}: has no cells of {', '.join(tasks)}. Run python -m stages.metrics first."
        )
    if absent:
        _log.warning("%s: has no cells of %s. Tables omit these tasks.", folder, ", ".join(absent))
    also = [task for task in others if task not in tasks and (folder / task).is_dir()]
    return [*(task for task in tasks if task not in absent), *also]


def read_cells(paths: Iterable[Path]) -> pd.DataFrame:
    """Read cells.csv files into one frame, one row per cell.

    Numbers are floats (NaN if absent), everything else is text. Raises DataError for a damaged
    file or one with other columns.
    """
    frames = []
    for path in paths:
        try:
            frames.append(_read(path))
        except (OSError, ValueError) as error:
            problem = " ".join(str(error).split())
            raise DataError(
                f"{path}: not a complete table of cells ({problem}). "
                "Run python -m stages.metrics again."
            ) from None
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_COLUMNS)


def _read(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, lineterminator="\n")
    if tuple(frame.columns) != _COLUMNS:
        raise ValueError(f"columns {', '.join(frame.columns)} instead of {', '.join(_COLUMNS)}")
    if frame.isna().any(axis=None) or not path.read_bytes().endswith(b"\n"):
        raise ValueError("truncated line")
    for name in _NUMBERS:
        frame[name] = pd.to_numeric(frame[name])
    frame[list(_COUNTS)] = frame[list(_COUNTS)].astype(int)
    return frame


def score_of(cell: Cell) -> str:
    """Name the external score that Kendall's tau compares with a measure; empty for other cells."""
    is_comparison = cell.metric.startswith(_KENDALL) and cell.metric != cell.column
    return cell.metric.removeprefix(_KENDALL) if is_comparison else ""


class CellIndex:
    """Look up cells by key. A test set is found under its name and under its roles in the paper."""

    def __init__(self, frame: pd.DataFrame) -> None:
        cells = _cells(frame)
        self.cells = [cell for cell in cells if cell.regime != "-"]
        self._by_key: dict[Key, Cell] = {}
        for cell in self.cells:
            key = cell.key
            self._by_key[key] = cell
            for role in cell.roles.split():
                self._by_key[key._replace(test_set=role)] = cell
        self._of_set = {(cell.task, name): cell for cell in cells for name in _names(cell)}
        self._labels = {cell.task: cell.task_label for cell in self.cells if cell.task_label}
        self._families = {cell.task: cell.family for cell in self.cells if cell.family}
        self._ensembles: dict[str, list[str]] = {}
        for task, ensemble in dict.fromkeys((cell.task, cell.ensemble) for cell in self.cells):
            self._ensembles.setdefault(task, []).append(ensemble)
        # Tables look up keys by the same parts thousands of times.
        self._by_parts = cache(self._grouped_by)

    @property
    def tasks(self) -> list[str]:
        """The tasks that have cells."""
        return list(self._ensembles)

    @cached_property
    def scores(self) -> list[str]:
        """The names of the external scores that measures were compared with."""
        return list(dict.fromkeys(filter(None, map(score_of, self.cells))))

    def label(self, task: str) -> str:
        """The name of a task in tables."""
        return self._labels.get(task, task)

    def family(self, task: str) -> str:
        """Whether a task is `translation` or `speech`; empty if its cells do not say."""
        return self._families.get(task, "")

    def keys(self, **wanted: str) -> list[Key]:
        """All keys, also by role, whose named parts have the wanted values."""
        return self._by_parts(*wanted).get(tuple(wanted.values()), [])

    def _grouped_by(self, *names: str) -> Mapping[tuple[str, ...], list[Key]]:
        groups = defaultdict(list)
        for key in self._by_key:
            groups[tuple(getattr(key, name) for name in names)].append(key)
        return groups

    def ensemble(self, task: str, of_paper: str) -> str:
        """The paper's ensemble if the task was run with it, otherwise the run's own."""
        single = ("single", CHECKPOINT_AVERAGE)
        own = [name for name in self._ensembles.get(task, ()) if name not in single]
        return of_paper if of_paper in own or not own else own[0]

    def cell(self, key: Key) -> Cell:
        """The cell with this key, or a cell without a value whose reason says why.

        The key may have a role in place of the name of a test set; the cell has the name.
        """
        if (cell := self._by_key.get(key)) is not None:
            return cell
        of_set = self._of_set.get((key.task, key.test_set))
        if of_set is None:
            return Cell(**key._asdict(), reason=self._why_absent(key))
        known = key._replace(test_set=of_set.test_set)
        return Cell(**known._asdict(), roles=of_set.roles, reason=self._why_absent(key))

    def _why_absent(self, key: Key) -> str:
        of_set = self._of_set.get((key.task, key.test_set))
        if of_set is not None and of_set.regime == "-":
            return f"no such set: {of_set.reason}"
        shared: dict[str, str] = {}
        for name, reason in _WHY_ABSENT.items():
            shared[name] = getattr(key, name)
            if not self.keys(**shared):
                named = key._replace(
                    task=self.label(key.task),
                    test_set=of_set.test_set if of_set else key.test_set,
                    ensemble=ensemble_name(key.ensemble),
                    regime=_REGIMES.get(key.regime, key.regime),
                    hypotheses=POSTERIORS.get(key.hypotheses, key.hypotheses),
                )
                return reason.format(**named._asdict())
        raise AssertionError(f"{key} is in the index")


def _names(cell: Cell) -> list[str]:
    """The name of the test set and its roles."""
    return [cell.test_set, *cell.roles.split()]


def _cells(frame: pd.DataFrame) -> list[Cell]:
    columns: dict[str, list[Any]] = {name: frame[name].tolist() for name in _COLUMNS}
    for name in _NUMBERS:
        columns[name] = [None if isnan(x) else x for x in frame[name].astype(float)]
    return [Cell(*values) for values in zip(*columns.values(), strict=True)]

"""Cells: the numbers of the evidence, each with its key, interval and signature."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf, isfinite
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import DataError


class Key(NamedTuple):
    """The parts that identify a cell, here and in the paper's file of results."""

    task: str
    test_set: str
    ensemble: str
    hypotheses: str
    regime: str
    T: str
    B: str
    length_norm: str
    column: str
    metric: str


# The kind of ensemble whose stores each hold one averaged model, one per training run.
CHECKPOINT_AVERAGE = "checkpoint_average"
# Between the training runs of a cell.
RUN_SEPARATOR = ";"
# The measure that is the share of a source's words that the hypothesis repeats.
COPY_THROUGH = "copy_through"
# The measure that is the number of characters of the source.
SOURCE_LENGTH = "source_length"
# Measures that compare texts or count them, which are computed here and not by stage uncertainty.
TEXT_MEASURES = (COPY_THROUGH, SOURCE_LENGTH)
# Reason of cells that need references, if a test set has none.
NO_REFERENCE = "no reference"
KEY_COLUMNS = Key._fields
_key_values = attrgetter(*KEY_COLUMNS)
_PERCENT = (0.0, 100.0)
# Metric -> its lowest and highest possible value. The stored log-prob of a reference with
# probability 1 may be slightly above 0.
_RANGES = {
    **dict.fromkeys(("bleu", "chrf", "roc_auc", "aupr", "ece", "copied_percent"), _PERCENT),
    "prr": (-inf, 100.0),
    # The released code's curve has no end, so that other orders may beat that of the errors.
    **dict.fromkeys(("prr_shifted", "prr_released"), (-inf, inf)),
    "wer_percent": (0.0, inf),
    "cer_percent": (0.0, inf),
    "nll": (-1e-2, inf),
}
METRIC_NAMES = frozenset(_RANGES)
# How measures are judged by an external score -> the lowest and highest possible value. The metric
# of a cell is one of these names, `_` and the name of the score; its column is the measure.
SCORE_STATISTICS = {
    "prr": (-inf, 100.0),
    **dict.fromkeys(("pearson", "spearman", "kendall"), (-1.0, 1.0)),
}
LOWER_IS_BETTER = ("nll", "wer_percent", "cer_percent", "ece")  # of metrics
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Cell:
    """One number, or the reason why there is none.

    The key is written as in the paper's file: `hypotheses` is the combination that decoded, or `-`
    for single models; `T` and `B` are empty where they do not apply; `column` is the measure.
    If the value is the mean over single members, or over ensembles of one kind from several
    training runs, `spread` is their standard deviation (ddof 1). `low` and `high` are the 95 %
    interval, and `n` is the number of sentences (of both sets for ROC-AUC). `groups` is the number
    of groups of sentences that the bootstrap draws (for ROC-AUC, of the set that has fewer).
    `runs` are the training runs behind the value, joined by `;`, and `members` is the number of
    members of each ensemble. `reason` says why the value or its interval is missing, or what limits
    them: a measure that is constant, resamples that were left out, fewer hypotheses than B. `data`
    is the corpus of the test set, and `roles` are the names that the paper's tables give to such a
    set, separated by spaces. `task_label` is the name of the task in tables; empty: `task`.
    `family` is translation or speech.
    """

    task: str
    test_set: str
    ensemble: str
    hypotheses: str
    regime: str
    T: str = ""
    B: str = ""
    length_norm: str = "true"
    column: str = ""
    metric: str = ""
    value: float | None = None
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    groups: int = 0
    runs: str = ""
    members: int = 0
    reason: str = ""
    data: str = ""
    signature: str = ""
    roles: str = ""
    task_label: str = ""
    family: str = ""

    @property
    def key(self) -> Key:
        """The key of the cell."""
        return Key._make(_key_values(self))

    @property
    def tracked_name(self) -> str:
        """Name of the cell in experiment tracking: its key within the task, metric first."""
        setting = "".join(
            f"_{name}{value}" for name, value in (("B", self.B), ("T", self.T)) if value
        )
        setting += "" if self.length_norm == "true" else "_no_length_norm"
        system = "_".join(name for name in (self.ensemble, self.hypotheses) if name != "-")
        return f"{self.metric}/{self.test_set}/{system}_{self.regime}/{self.column}{setting}"


def absent_set_cell(task: str, test_set: str, reason: str, roles: str) -> Cell:
    """The one cell of a test set that could not be prepared, in place of all its numbers."""
    return Cell(task, test_set, "-", "-", "-", reason=reason, roles=roles)


def write_cells(path: Path, cells: Iterable[Cell]) -> None:
    """Write cells as CSV, one per line, with 10 significant digits; missing numbers are empty.

    Raises DataError, with the full key, if a number is not finite or impossible for its metric.
    """
    names = [field.name for field in fields(Cell)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for cell in cells:
            _check_possible(cell)
            writer.writerow([_text(getattr(cell, name)) for name in names])


def number_text(value: float) -> str:
    """A number as the paper's file writes it, such as `10` or `0.5`."""
    return f"{value:.10g}"


def _check_possible(cell: Cell) -> None:
    lowest, highest = _possible_range(cell)
    for name in ("value", "spread", "low", "high"):
        number = getattr(cell, name)
        if number is None:
            continue
        low, high = (0.0, inf) if name == "spread" else (lowest, highest)
        if not (isfinite(number) and low - _ROUNDING <= number <= high + _ROUNDING):
            key = ", ".join(f"{name} {text}" for name, text in cell.key._asdict().items() if text)
            raise DataError(
                f"cell {key}: {name} must be finite and in [{low:g}, {high:g}] (got {number}). "
                "Check the decode stores and run python -m stages.uncertainty again."
            )


def _possible_range(cell: Cell) -> tuple[float, float]:
    if cell.metric in _RANGES or cell.metric == cell.column:
        return _RANGES.get(cell.metric, (-inf, inf))
    return SCORE_STATISTICS.get(cell.metric.partition("_")[0], (-inf, inf))


def _text(value: object) -> str:
    if value is None:
        return ""
    return number_text(value) if isinstance(value, float) else str(value)

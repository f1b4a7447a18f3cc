"""A cell: one number of the evidence, with its key, its interval and its pedigree."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf, isfinite
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import DataError


class Key(NamedTuple):
    """What a cell is known by, here and in the paper's file of results."""

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


# The kind of ensemble whose stores are of one averaged model each, one from every training run.
CHECKPOINT_AVERAGE = "checkpoint_average"
# The measure of a sentence that is the copied share of its source.
COPY_THROUGH = "copy_through"
# The reason of cells that need a reference, on a test set that has none.
NO_REFERENCE = "no reference"
KEY_COLUMNS = Key._fields
_PERCENT = (0.0, 100.0)
# Metric -> the lowest and highest value that it can have. A reference of probability 1 may have a
# stored log-probability a little above 0.
_RANGES = {
    **dict.fromkeys(("bleu", "chrf", "roc_auc", "aupr", "ece", "copied_percent"), _PERCENT),
    "prr": (-inf, 100.0),
    "wer_percent": (0.0, inf),
    "cer_percent": (0.0, inf),
    "nll": (-1e-2, inf),
}
LOWER_IS_BETTER = ("nll", "wer_percent", "cer_percent", "ece")  # of metrics
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Cell:
    """One number, or the reason why there is none.

    The key is written as in the paper's file: `hypotheses` is the combination that decoded, `-` for
    single models; `T` and `B` are empty where they do not apply; `column` is the measure.
    `spread` is the standard deviation over single members, or over ensembles of one kind from
    several trainings (one degree of freedom less), of which the value is the mean; `low`, `high`
    are the 95 % interval; `n` the sentences that the value stands on (of both sets for ROC-AUC);
    `reason` says why the value or its interval is absent or idle; `data` is the corpus behind the
    role, and `also_called` the other names of the role, separated by spaces.
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
    reason: str = ""
    data: str = ""
    signature: str = ""
    also_called: str = ""

    @property
    def key(self) -> Key:
        """The key of the cell."""
        return Key(*(str(getattr(self, name)) for name in KEY_COLUMNS))

    @property
    def tracked_name(self) -> str:
        """The key within the task as one name, for a tracker: the metric first, then the rest."""
        setting = "".join(
            f"_{name}{value}" for name, value in (("B", self.B), ("T", self.T)) if value
        )
        setting += "" if self.length_norm == "true" else "_no_length_norm"
        system = "_".join(one for one in (self.ensemble, self.hypotheses) if one != "-")
        return f"{self.metric}/{self.test_set}/{system}_{self.regime}/{self.column}{setting}"


def absent_set_cell(task: str, test_set: str, reason: str, also_called: str) -> Cell:
    """What stands for all cells of a test set that could not be made; its regime is `-`."""
    return Cell(task, test_set, "-", "-", "-", reason=reason, also_called=also_called)


def write_cells(path: Path, cells: Iterable[Cell]) -> None:
    """Write cells as CSV, one a line, numbers to 10 significant digits, absent ones empty.

    Raises DataError, naming the whole key, for a value that is not finite or that its metric cannot
    have.
    """
    names = [one.name for one in fields(Cell)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for cell in cells:
            _refuse_impossible(cell)
            writer.writerow([_text(getattr(cell, name)) for name in names])


def number_text(value: float) -> str:
    """A number as the paper's file writes it: `10`, `0.5`."""
    return f"{value:.10g}"


def _refuse_impossible(cell: Cell) -> None:
    lowest, highest = _RANGES.get(cell.metric, (-inf, inf))
    for name in ("value", "spread", "low", "high"):
        number = getattr(cell, name)
        if number is None:
            continue
        low, high = (0.0, inf) if name == "spread" else (lowest, highest)
        if not (isfinite(number) and low - _ROUNDING <= number <= high + _ROUNDING):
            key = ", ".join(f"{column} {one}" for column, one in cell.key._asdict().items() if one)
            raise DataError(
                f"{name} of the cell {key} must be finite and in [{low:g}, {high:g}], got {number}"
            )


def _text(value: object) -> str:
    if value is None:
        return ""
    return number_text(value) if isinstance(value, float) else str(value)


# Of metrics that have many columns, the one that is looked at first.
_MEASURES = {
    "prr": "prex_entropy_s",
    "roc_auc": "prex_rmi_s",
    "aupr": "prex_score",
    "percent": "token_error_rate_percent",
}
# Metrics that have one column, of another name.
_OF_ONE_COLUMN = ("copied_percent",)


def headline(cells: Iterable[Cell]) -> dict[str, float]:
    """Flat name -> value of cells with a value: quality, NLL and one measure a metric and test set.

    Names are made of letters, digits, `_`, `-`, `.` and `/`, fit for DVC and MLflow.
    """
    numbers = {}
    for cell in cells:
        if cell.value is None or cell.length_norm != "true":
            continue
        name = f"{cell.test_set}/{cell.ensemble}"
        name += f"_{cell.hypotheses}" if cell.hypotheses != "-" else ""
        if cell.metric in (cell.column, *_OF_ONE_COLUMN):
            numbers[f"{name}/{cell.metric}"] = cell.value
        elif cell.column == _MEASURES.get(cell.metric):
            setting = (f"_B{cell.B}" if cell.B else "") + (f"_T{cell.T}" if cell.T else "")
            numbers[f"{name}/{cell.metric}_{cell.column}{setting}"] = cell.value
    return numbers

"""A table as it is read: headings with spans, rows of labels and cells, footnotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.errors import DataError
from pipeline.metrics.cell import LOWER_IS_BETTER, Cell

_DECIMALS = {"nll": 2, "hours": 2, "sentences": 0, "utterances": 0}


@dataclass(frozen=True)
class Heading:
    """A heading over `span` columns; `latex` is its mathematical form, if it has one."""

    text: str
    span: int = 1
    latex: str | None = None


@dataclass(frozen=True)
class TableCell:
    """One of our cells (its `test_set` is the name that this table uses) beside the paper's."""

    cell: Cell
    paper: float | None = None
    paper_spread: float | None = None
    best: bool = False

    def shown(self, value: float) -> str:
        """A number with the decimals that its metric is printed with, never -0.0."""
        return f"{value:z.{_DECIMALS.get(self.cell.metric, 1)}f}"


@dataclass(frozen=True)
class Row:
    """Labels, one a label column, then cells, one a value column; None leaves a column empty.

    `rule` asks for a line above the row.
    """

    labels: tuple[str, ...]
    cells: tuple[TableCell | None, ...]
    rule: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the report; `label` is that of the paper, `header` its rows of headings.

    The spans of each row of headings add up to the columns: labels first, then values. Raises
    DataError for a table without headings.
    """

    label: str
    title: str
    header: tuple[tuple[Heading, ...], ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.header:
            raise DataError(f"table {self.label} must have at least one row of headings, got none")

    @property
    def cells(self) -> list[TableCell]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row.cells if cell is not None]

    @property
    def has_interval(self) -> bool:
        """Whether a cell has an interval."""
        return any(one.cell.low is not None for one in self.cells)

    @property
    def has_paper(self) -> bool:
        """Whether a cell has a number of the paper."""
        return any(one.paper is not None for one in self.cells)

    @property
    def n_label(self) -> int:
        """How many columns hold labels."""
        return len(self.rows[0].labels) if self.rows else 0

    @property
    def name(self) -> str:
        """The label as a file name."""
        return self.label.replace(":", "_")

    @property
    def footnotes(self) -> list[str]:
        """The notes, then the corpora behind the roles and the signatures, each said once."""
        cells = [one.cell for one in self.cells]
        data = dict.fromkeys(
            f"{cell.test_set} ({cell.task}): {cell.data}." for cell in cells if cell.data
        )
        signatures = dict.fromkeys(
            f"Signature: {cell.signature}" for cell in cells if cell.signature
        )
        return [*self.notes, *data, *signatures]

    @property
    def reasons(self) -> dict[str, str]:
        """Reason -> footnote mark (a, b, ... z, aa, ...), in the order of the cells."""
        reasons = dict.fromkeys(one.cell.reason for one in self.cells if one.cell.reason)
        return {reason: _mark(place) for place, reason in enumerate(reasons)}


def mark_best(cells: Sequence[TableCell | None]) -> list[TableCell | None]:
    """The cells with the best one marked, and alike all that lie within its 95 % interval.

    Cells of another metric than the first, as a rate beside detection measures, take no part. None
    is best where all are equal, as those of an ensemble of one.
    """
    metrics = [one.cell.metric for one in cells if one is not None]
    valued = [
        (one, one.cell.value)
        for one in cells
        if one is not None and one.cell.value is not None and one.cell.metric == metrics[0]
    ]
    if len({value for _, value in valued}) < 2:
        return list(cells)
    best, best_value = (min if metrics[0] in LOWER_IS_BETTER else max)(
        valued, key=lambda pair: pair[1]
    )
    low = best_value if best.cell.low is None else best.cell.low
    high = best_value if best.cell.high is None else best.cell.high
    ties = [one for one, value in valued if value == best_value or low <= value <= high]
    return [replace(one, best=True) if one is not None and one in ties else one for one in cells]


def _mark(place: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[place % 26] * (place // 26 + 1)

"""The cells of tables as tidy CSV, in the columns of the paper's own file of results."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.metrics.cell import KEY_COLUMNS, number_text
from pipeline.report.table import Table, TableCell

_COLUMNS = (
    "table",
    *KEY_COLUMNS,
    "value",
    "spread",
    "low",
    "high",
    "n",
    "reason",
    "data",
    "signature",
)
_PAPER_COLUMNS = ("paper_value", "paper_spread", "best")


def write_results(path: Path, tables: Iterable[Table]) -> None:
    """Write every cell of every table; a join with the paper's file on the key gives both.

    A cell that a table shows in several places has one row.
    """
    rows = dict.fromkeys(tuple(_ours(table, one)) for table in tables for one in table.cells)
    _write(path, _COLUMNS, rows)


def write_table(path: Path, table: Table, beside_paper: bool) -> None:
    """Write the cells of one table; `beside_paper` adds the paper's number of each."""
    rows = [_ours(table, one) for one in table.cells]
    if not beside_paper:
        _write(path, _COLUMNS, rows)
        return
    theirs = [
        [_text(one.paper), _text(one.paper_spread), str(one.best).lower()] for one in table.cells
    ]
    beside = [[*row, *other] for row, other in zip(rows, theirs, strict=True)]
    _write(path, (*_COLUMNS, *_PAPER_COLUMNS), beside)


def _ours(table: Table, one: TableCell) -> list[str]:
    cell = one.cell
    numbers = [_text(number) for number in (cell.value, cell.spread, cell.low, cell.high)]
    return [table.label, *cell.key, *numbers, str(cell.n), cell.reason, cell.data, cell.signature]


def _write(path: Path, columns: tuple[str, ...], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _text(number: float | None) -> str:
    return "" if number is None else number_text(number)

"""Tables as the page shows them: one column of labels, and anchors to link to rows and columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.report.page.anchors import slug, unique_anchors
from pipeline.report.table import Row, Table, TableCell

_TASK = "Task"
_WITH_HEADING = re.compile(r"[0-9.e+-]+|yes|no")  # values that say nothing without their heading


@dataclass(frozen=True)
class HeaderCell:
    """A heading over `columns` columns and `rows` rows of headings.

    `anchor` is the name to link to, which headings of a single column have.
    """

    text: str
    columns: int
    rows: int
    anchor: str = ""

    @property
    def scope(self) -> str:
        """The scope of the heading in HTML."""
        return "colgroup" if self.columns > 1 else "col"


@dataclass(frozen=True)
class ShownRow:
    """A row: its label, a smaller detail below the label, and its cells."""

    anchor: str
    label: str
    detail: str
    cells: tuple[TableCell | None, ...]
    rule: bool


@dataclass(frozen=True)
class ShownTable:
    """A table with its labels in one column, so that this column can stay in sight."""

    anchor: str
    table: Table
    header: list[list[HeaderCell]]
    rows: list[ShownRow]


def shown_table(table: Table) -> ShownTable:
    """The table with anchors, which are unique on the page if the names of tables are."""
    name = slug(table.name)
    labelled = _with_one_label(table)
    labels = [_label(table, row) for row in table.rows]
    anchors = unique_anchors([f"row-{name}-{slug(' '.join(row.labels))}" for row in table.rows])
    rows = [
        ShownRow(anchor, label, detail, row.cells, row.rule)
        for anchor, (label, detail), row in zip(anchors, labels, table.rows, strict=True)
    ]
    return ShownTable(f"table-{name}", table, _header(labelled, f"column-{name}"), rows)


# The headings of a table: one list per row of headings, of (text, span).
_Headings = list[list[tuple[str, int]]]


def _with_one_label(table: Table) -> _Headings:
    """The headings, in which one heading stands for all columns of labels."""
    rows = [[(heading.text, heading.span) for heading in row] for row in table.header]
    if table.n_label < 2:
        return rows
    first, *others = [text for text, _ in rows[0][: table.n_label] if text]
    # `Test set` within a list, but `T` and `LNG`.
    inside = [text[0].lower() + text[1:] if text[1:].islower() else text for text in others]
    texts = [", ".join([first, *inside]), *[""] * (len(rows) - 1)]
    return [[(text, 1), *row[table.n_label :]] for text, row in zip(texts, rows, strict=True)]


def _label(table: Table, row: Row) -> tuple[str, str]:
    """The label of a row and its detail: `EN-DE: permuted (PRM)` and `T = 10, B = 5`."""
    if not row.labels:
        return "", ""
    names = [heading.text for heading in table.header[0]]
    n_main = 2 if names[0] == _TASK else 1
    detail = [
        f"{name} = {value}" if _WITH_HEADING.fullmatch(value) else value
        for name, value in zip(names[n_main:], row.labels[n_main:], strict=False)
        if value
    ]
    return ": ".join(row.labels[:n_main]), ", ".join(detail)


def _header(headings: _Headings, prefix: str) -> list[list[HeaderCell]]:
    """The rows of headings, in which a heading also covers empty headings below it."""
    grid = [_by_column(row) for row in headings]
    rows: list[list[HeaderCell]] = []
    names: dict[int, str] = {}  # first column -> the headings above it
    for depth, row in enumerate(grid):
        cells = []
        for column, (text, span) in row.items():
            above = grid[depth - 1].get(column) if depth else None
            if not text and above is not None and above[1] == span:
                continue  # covered by the heading above
            below = 1
            while depth + below < len(grid) and grid[depth + below].get(column) == ("", span):
                below += 1
            for covered in range(column, column + span):
                names[covered] = f"{names.get(covered, '')} {text}"
            is_last = span == 1 and depth + below == len(grid) and text
            anchor = f"{prefix}-{slug(names[column])}" if is_last else ""
            cells.append(HeaderCell(text, span, below, anchor))
        rows.append(cells)
    return _with_anchors(rows)


def _with_anchors(rows: list[list[HeaderCell]]) -> list[list[HeaderCell]]:
    cells = [cell for row in rows for cell in row]
    anchors = iter(unique_anchors([cell.anchor for cell in cells]))
    return [
        [HeaderCell(cell.text, cell.columns, cell.rows, next(anchors)) for cell in row]
        for row in rows
    ]


def _by_column(row: list[tuple[str, int]]) -> dict[int, tuple[str, int]]:
    """First column -> (text, span)."""
    by_column, column = {}, 0
    for text, span in row:
        by_column[column] = text, span
        column += span
    return by_column

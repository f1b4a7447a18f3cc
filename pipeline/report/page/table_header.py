"""The headings of a table with the spans that HTML wants."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.report.table import Table


@dataclass(frozen=True)
class HeaderCell:
    """A heading over `columns` columns and `rows` rows of headings."""

    text: str
    columns: int
    rows: int

    @property
    def scope(self) -> str:
        """What it is the heading of."""
        return "colgroup" if self.columns > 1 else "col"


def header_cells(table: Table) -> list[list[HeaderCell]]:
    """The rows of headings; one above empty ones reaches down over them."""
    grid = [_by_column(row) for row in _texts(table)]
    rows = []
    for depth, row in enumerate(grid):
        cells = []
        for column, (text, span) in row.items():
            above = grid[depth - 1].get(column) if depth else None
            if not text and above is not None and above[1] == span:
                continue  # the one above reaches down to here
            below = 1
            while depth + below < len(grid) and grid[depth + below].get(column) == ("", span):
                below += 1
            cells.append(HeaderCell(text, span, below))
        rows.append(cells)
    return rows


def _texts(table: Table) -> list[list[tuple[str, int]]]:
    return [[(heading.text, heading.span) for heading in row] for row in table.header]


def _by_column(row: list[tuple[str, int]]) -> dict[int, tuple[str, int]]:
    """First column -> (text, span)."""
    by_column, column = {}, 0
    for text, span in row:
        by_column[column] = text, span
        column += span
    return by_column

from __future__ import annotations

from pipeline.report.page.sections import HeaderCell, header_cells
from pipeline.report.table import Heading, Table


def test_a_heading_reaches_down_over_empty_ones_of_its_width() -> None:
    table = Table(
        "tab:x",
        "X",
        (
            (Heading("Task"), Heading("PrEx", 2), Heading("")),
            (Heading(""), Heading("H"), Heading(""), Heading("I")),
        ),
        (),
    )
    assert header_cells(table) == [
        [HeaderCell("Task", 1, 2), HeaderCell("PrEx", 2, 1), HeaderCell("", 1, 1)],
        [HeaderCell("H", 1, 1), HeaderCell("", 1, 1), HeaderCell("I", 1, 1)],
    ]
    assert [cell.scope for cell in header_cells(table)[0]] == ["col", "colgroup", "col"]

from __future__ import annotations

from pipeline.metrics.cell import Cell
from pipeline.report.page.tables import HeaderCell, shown_table
from pipeline.report.table import Heading, Row, Table, TableCell

HEADER = (
    (*(Heading(name) for name in ("Task", "Test set", "T", "Length norm.")), Heading("PrEx", 2)),
    (*[Heading("")] * 4, Heading("H C-IW"), Heading("M")),
)


def table(*labels: tuple[str, ...]) -> Table:
    cell = TableCell(Cell("nmt_ende", "help", "random_init", "prex", "beam", value=1.0))
    return Table("tab:x_y", "X", HEADER, tuple(Row(own, (cell, None)) for own in labels))


def test_the_labels_of_a_row_share_one_column_so_that_it_can_stay_in_sight() -> None:
    shown = shown_table(table(("EN-DE", "help (nwt14)", "10", "yes"), ("EN-FR", "news", "", "no")))
    assert [(row.label, row.detail) for row in shown.rows] == [
        ("EN-DE: help (nwt14)", "T = 10, Length norm. = yes"),
        ("EN-FR: news", "Length norm. = no"),
    ]
    assert shown.header == [
        [
            HeaderCell("Task, test set, T, length norm.", 1, 2, shown.header[0][0].anchor),
            HeaderCell("PrEx", 2, 1),
        ],
        [
            HeaderCell("H C-IW", 1, 1, "column-tab-x-y-prex-h-c-iw"),
            HeaderCell("M", 1, 1, "column-tab-x-y-prex-m"),
        ],
    ]


def test_text_in_a_detail_stands_without_its_heading() -> None:
    header = (tuple(Heading(name) for name in ("Task", "Test set", "Model", "BLEU")),)
    row = Row(("EN-DE", "talks", "random-init PrEx"), (None,))
    (shown,) = shown_table(Table("beyond:x", "X", header, (row,))).rows
    assert (shown.label, shown.detail) == ("EN-DE: talks", "random-init PrEx")


def test_rows_and_columns_have_unique_anchors() -> None:
    shown = shown_table(table(("EN-DE", "a b", "1", "yes"), ("EN-DE", "a-b", "1", "yes")))
    assert shown.anchor == "table-tab-x-y"
    assert [row.anchor for row in shown.rows] == [
        "row-tab-x-y-en-de-a-b-1-yes",
        "row-tab-x-y-en-de-a-b-1-yes-2",
    ]
    twice = Table("t", "X", ((Heading("Model"), Heading("H"), Heading("H")),), ())
    (headings,) = shown_table(twice).header
    assert [heading.anchor for heading in headings] == [
        "column-t-model",
        "column-t-h",
        "column-t-h-2",
    ]


def test_a_heading_covers_empty_headings_below_it() -> None:
    headings = (
        (Heading("Task"), Heading("PrEx", 2), Heading("")),
        (Heading(""), Heading("H"), Heading(""), Heading("I")),
    )
    shown = shown_table(Table("tab:x", "X", headings, ()))
    assert [[(cell.text, cell.columns, cell.rows) for cell in row] for row in shown.header] == [
        [("Task", 1, 2), ("PrEx", 2, 1), ("", 1, 1)],
        [("H", 1, 1), ("", 1, 1), ("I", 1, 1)],
    ]
    assert [cell.scope for cell in shown.header[0]] == ["col", "colgroup", "col"]

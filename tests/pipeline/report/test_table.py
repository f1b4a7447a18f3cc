from dataclasses import replace

import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.report.table import Heading, Row, Table, TableCell, mark_best


def cell(value: float | None, half_width: float | None = None, metric: str = "prr") -> TableCell:
    low = None if value is None or half_width is None else value - half_width
    high = None if value is None or half_width is None else value + half_width
    key = ("nmt_ende", "newstest14", "random_init", "prex", "beam")
    return TableCell(Cell(*key, metric=metric, value=value, low=low, high=high))


@pytest.mark.parametrize(
    ("cells", "best"),
    [
        ([cell(50, 2), cell(49, 9), cell(47, 1)], [True, True, False]),
        ([cell(50), cell(50), cell(49)], [True, True, False]),
        ([cell(None), cell(50), cell(49)], [False, True, False]),
        ([cell(2, 0.1, "nll"), cell(1, 0.1, "nll"), cell(1.1, 1, "nll")], [False, True, True]),
        ([cell(30, 1, "wer_percent"), cell(20, 1, "wer_percent")], [False, True]),
        ([cell(None), cell(50)], [False, False]),
        ([cell(50), cell(60, metric="percent"), cell(40)], [True, False, False]),
        ([], []),
    ],
)
def test_the_best_and_the_values_in_its_interval_are_marked(cells, best):
    assert [marked.best for marked in mark_best(cells)] == best


def test_a_measure_that_is_the_same_for_every_sentence_is_never_the_best():
    constant = replace(cell(50), cell=replace(cell(50).cell, reason=CONSTANT))
    marked = mark_best([constant, cell(40), cell(30)])
    assert [shown.best for shown in marked if shown] == [False, True, False]


def test_an_empty_column_stays_empty():
    marked = mark_best([None, cell(50), cell(49)])
    assert marked[0] is None
    assert [shown.best for shown in marked[1:] if shown] == [True, False]


def test_numbers_have_the_decimals_of_their_metric():
    assert cell(1.0, metric="nll").format(1.234) == "1.23"
    assert cell(1.0, metric="bleu").format(28.04) == "28.0"
    assert cell(1.0, metric="prr").format(-0.04) == "0.0"


def test_footnotes_have_no_repeats_and_reasons_have_marks():
    key = ("nmt_ende", "PRM", "random_init", "prex", "beam")
    cells = [
        TableCell(Cell(*key, value=1.0, data="permuted help", signature="s1")),
        TableCell(Cell(*key, reason="no reference", data="permuted help", signature="s1")),
        TableCell(Cell(*key, reason="one class only")),
        TableCell(Cell(*key, reason="no reference")),
    ]
    table = Table("tab:x", "X", ((Heading("", 5),),), (Row(("r",), (*cells, None)),), ("Note.",))
    assert table.footnotes == ["Note.", "PRM (nmt_ende): permuted help.", "Signature: s1"]
    assert table.reasons == {"no reference": "a", "one class only": "b"}
    assert table.name == "tab_x"
    assert len(table.cells) == 4


def test_a_table_without_headings_is_refused() -> None:
    with pytest.raises(DataError, match="table tab:mine: has no headings"):
        Table("tab:mine", "Mine", (), ())

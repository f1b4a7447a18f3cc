import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.report.table import Heading, Row, Table, TableCell


def cell(value: float | None, half_width: float | None = None, metric: str = "prr") -> TableCell:
    low = None if value is None or half_width is None else value - half_width
    high = None if value is None or half_width is None else value + half_width
    key = ("nmt_ende", "newstest14", "random_init", "prex", "beam")
    return TableCell(Cell(*key, metric=metric, value=value, low=low, high=high))


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

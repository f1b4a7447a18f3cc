from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell, Key, absent_set_cell, write_cells
from pipeline.report.cells import CellIndex, read_cells

OURS = Cell(
    "nmt_ende",
    "newstest14",
    "random_init",
    "prex",
    "beam",
    T="10",
    B="5",
    column="var_p",
    metric="roc_auc",
    value=61.5,
    n=7,
    roles="nwt14 news",
    signature="a,b|c",
)


def test_a_cell_is_read_as_it_was_written(frame_of):
    assert CellIndex(frame_of(OURS)).cells == [OURS]


def test_cells_are_found_under_the_other_names_of_a_test_set(frame_of):
    index = CellIndex(frame_of(OURS))
    cell = index.cell(OURS.key._replace(test_set="nwt14"))
    assert (cell.test_set, cell.value) == ("newstest14", 61.5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": "asr"}, "task asr was not run"),
        ({"test_set": "LTC"}, "test set LTC is not part of this run of nmt_ende"),
        ({"ensemble": "checkpoint"}, "newstest14 was not decoded by checkpoint"),
        ({"regime": "sample"}, "newstest14 has no decode by sampling"),
        ({"hypotheses": "expr"}, "newstest14 has no decode by ExPr"),
        ({"metric": "prr"}, "prr was not computed for newstest14"),
        ({"column": "xwer"}, "xwer was not computed for newstest14"),
        ({"length_norm": "false"}, "length_norm = false is not in the uncertainty grid"),
        ({"B": "20"}, "B = 20 is not in the uncertainty grid"),
        ({"T": "1"}, "T = 1 is not in the uncertainty grid"),
    ],
)
def test_an_absent_cell_has_a_reason(frame_of, change: dict[str, str], reason: str):
    key = OURS.key._replace(**change)
    cell = CellIndex(frame_of(OURS)).cell(key)
    assert cell.value is None
    assert cell.reason.startswith(reason)
    assert Key(*(getattr(cell, name) for name in Key._fields)) == key


def test_a_test_set_that_could_not_be_prepared_has_a_reason(frame_of):
    absent = absent_set_cell("nmt_ende", "LTO", "no transcripts", "test-other")
    index = CellIndex(frame_of(OURS, absent))
    for name in ("LTO", "test-other"):
        cell = index.cell(OURS.key._replace(test_set=name))
        assert (cell.value, cell.reason) == (None, "no such set: no transcripts")
    assert index.cells == [OURS]
    assert index.ensemble("nmt_ende", "random_init") == "random_init"


def test_single_members_never_stand_in_for_checkpoint_averages(frame_of):
    single = replace(OURS, ensemble="single", hypotheses="-")
    average = CellIndex(frame_of(single)).cell(single.key._replace(ensemble="checkpoint_average"))
    assert (average.value, average.reason) == (
        None,
        "newstest14 was not decoded by checkpoint average",
    )


def test_a_damaged_file_is_refused(tmp_path: Path):
    path = tmp_path / "cells.csv"
    write_cells(path, [OURS])
    complete = path.read_text()
    for damaged in ("", complete[: complete.index("61.5")], complete.replace("61.5", "much")):
        path.write_text(damaged)
        with pytest.raises(
            DataError, match=r"cells\.csv: not a complete table .*Run python -m stages"
        ):
            read_cells([path])


def test_a_file_with_other_columns_is_refused(tmp_path: Path):
    path = tmp_path / "cells.csv"
    path.write_text("task,value\na,1\n")
    with pytest.raises(DataError, match=r"cells\.csv: .*\(columns task, value instead of task, "):
        read_cells([path])

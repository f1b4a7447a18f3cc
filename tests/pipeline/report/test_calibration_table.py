from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from pipeline.metrics.cell import Cell
from pipeline.report.beyond import calibration
from pipeline.report.formats import markdown


def test_a_row_for_each_set_and_level(frame_of: Callable[..., pd.DataFrame]) -> None:
    cells = [
        Cell("nmt_ende", "MED", ensemble, hypotheses, "beam", column=f"{level}_confidence",
             metric="ece", value=value, low=value - 1, high=value + 1, n=5)
        for level, value in (("token", 8.5), ("sequence", 17.25))
        for ensemble, hypotheses in (("snapshot", "prex"), ("snapshot", "expr"), ("single", "-"))
    ]  # fmt: skip
    table = calibration(frame_of(*cells, Cell("nmt_ende", "MED", "single", "-", "beam")))
    assert [row.labels for row in table.rows] == [
        ("EN-DE", "MED", "token"),
        ("EN-DE", "MED", "sequence"),
    ]
    assert [one.cell.value for one in table.cells] == [8.5] * 3 + [17.25] * 3
    assert "17.2" in markdown(table, beside_paper=False)


def test_a_run_without_calibration_has_no_rows(frame_of: Callable[..., pd.DataFrame]) -> None:
    table = calibration(frame_of(Cell("nmt_ende", "MED", "single", "-", "beam")))
    assert table.rows == ()
    assert markdown(table, beside_paper=False)

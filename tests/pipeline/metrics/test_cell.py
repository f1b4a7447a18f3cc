"""Cells and their names."""

from __future__ import annotations

from pipeline.metrics.cell import Cell
from pipeline.tracking import metric_name


def test_tracked_names_tell_cells_apart_and_are_ascii() -> None:
    cells = [
        Cell(
            task="nmt_ende",
            test_set="L-DE",
            ensemble="random_init",
            hypotheses="prex",
            regime="beam",
            T=temperature,
            B=beam,
            length_norm=length_norm,
            column="prex_rmi_s",
            metric="roc_auc",
        )
        for temperature in ("1", "10")
        for beam in ("1", "5")
        for length_norm in ("true", "false")
    ]
    names = [cell.tracked_name for cell in cells]
    assert len(set(names)) == len(cells)
    assert names[0] == "roc_auc/L-DE/random_init_prex_beam/prex_rmi_s_B1_T1"
    assert [metric_name(name) for name in names] == names

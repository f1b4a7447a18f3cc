"""Cells and their names."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell, write_cells
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


@pytest.mark.parametrize(
    ("metric", "number", "words"),
    [
        ("bleu", {"value": math.nan}, r"value of .* in \[0, 100\], got nan"),
        ("nll", {"value": math.inf}, r"value of .* must be finite and in \[-0\.01, inf\], got inf"),
        ("roc_auc", {"value": 50.0, "high": 100.5}, r"high of .* in \[0, 100\], got 100\.5"),
        ("prr", {"value": 101.0}, r"value of .* in \[-inf, 100\], got 101"),
        ("wer_percent", {"value": 9.0, "spread": -1.0}, r"spread of .* in \[0, inf\], got -1"),
    ],
)
def test_an_impossible_value_stops_with_the_whole_key(
    metric: str, number: dict[str, float], words: str, tmp_path: Path
) -> None:
    key = ("nmt_ende", "MED", "random_init", "prex", "beam")
    cell = Cell(*key, column="prex_rmi_s", metric=metric, **number)  # type: ignore[arg-type]
    where = "cell task nmt_ende, test_set MED, .*column prex_rmi_s, metric "
    with pytest.raises(DataError, match=where) as error:
        write_cells(tmp_path / "cells.csv", [cell])
    assert error.match(words)


def test_what_a_metric_can_be_is_written(tmp_path: Path) -> None:
    fine = [
        Cell("a", "b", "c", "-", "beam", metric=metric, value=value)
        for metric, value in (
            ("prr", -87.5),
            ("wer_percent", 150.0),
            ("nll", -5e-3),
            ("mine", -9.0),
        )
    ]
    write_cells(tmp_path / "cells.csv", [*fine, Cell("a", "b", "c", "-", "beam", reason="none")])
    assert len((tmp_path / "cells.csv").read_text().splitlines()) == 6

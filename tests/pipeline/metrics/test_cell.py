"""Cells, their file and their tracked names."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell, absent_set_cell, number_text, write_cells
from pipeline.tracking import metric_name


def test_tracked_names_are_distinct_and_ascii() -> None:
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
        ("bleu", {"value": math.nan}, r"value must .* in \[0, 100\] \(got nan\)"),
        ("nll", {"value": math.inf}, r"value must be finite and in \[-0\.01, inf\] \(got inf\)"),
        ("roc_auc", {"value": 50.0, "high": 100.5}, r"high must .* in \[0, 100\] \(got 100\.5\)"),
        ("prr", {"value": 101.0}, r"value must .* in \[-inf, 100\] \(got 101"),
        ("prr_da", {"value": 101.0}, r"value must .* in \[-inf, 100\] \(got 101"),
        ("kendall_da", {"low": -1.1}, r"low must .* in \[-1, 1\] \(got -1\.1\)"),
        ("pearson_da", {"value": 1.01}, r"value must .* in \[-1, 1\] \(got 1\.01\)"),
        ("spearman_da", {"high": 1.01}, r"high must .* in \[-1, 1\] \(got 1\.01\)"),
        ("wer_percent", {"value": 9.0, "spread": -1.0}, r"spread must .* in \[0, inf\] \(got -1"),
    ],
)
def test_an_impossible_value_is_rejected_with_the_full_key(
    metric: str, number: dict[str, float], words: str, tmp_path: Path
) -> None:
    key = ("nmt_ende", "MED", "random_init", "prex", "beam")
    cell = Cell(*key, column="prex_rmi_s", metric=metric, **number)  # type: ignore[arg-type]
    where = "cell task nmt_ende, test_set MED, .*column prex_rmi_s, metric [a-z_]+: "
    with pytest.raises(DataError, match=where) as error:
        write_cells(tmp_path / "cells.csv", [cell])
    assert error.match(words)


def test_possible_values_are_written(tmp_path: Path) -> None:
    possible = [
        Cell("a", "b", "c", "-", "beam", metric=metric, value=value)
        for metric, value in (
            ("prr", -87.5),
            ("wer_percent", 150.0),
            ("nll", -5e-3),
            ("mine", -9.0),
        )
    ]
    write_cells(
        tmp_path / "cells.csv", [*possible, Cell("a", "b", "c", "-", "beam", reason="none")]
    )
    assert len((tmp_path / "cells.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("metric", "lowest", "highest"),
    [
        *(
            (metric, 0, 100)
            for metric in ("bleu", "chrf", "roc_auc", "aupr", "ece", "copied_percent")
        ),
        ("prr", None, 100),
        ("wer_percent", 0, None),
        ("cer_percent", 0, None),
        ("nll", -0.01, None),
        ("mine", None, None),
    ],
)
def test_values_beyond_their_limits_are_rejected(
    metric: str, lowest: float | None, highest: float | None, tmp_path: Path
) -> None:
    """A value may exceed a limit by rounding."""

    def write(value: float) -> None:
        cell = Cell("a", "b", "c", "-", "beam", metric=metric, value=value, low=value, spread=0.0)
        write_cells(tmp_path / "cells.csv", [cell])

    for limit, outwards in ((lowest, -1), (highest, 1)):
        if limit is None:
            write(outwards * 1e6)
            with pytest.raises(DataError, match="must be finite"):
                write(outwards * math.inf)
        else:
            write(limit + outwards * 9e-10)
            with pytest.raises(DataError, match="value must be finite"):
                write(limit + outwards * 2e-9)


def test_cells_file_has_these_lines(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    cell = Cell(
        *("nmt_ende", "MED", "random_init", "prex", "beam"),
        T="10",
        B="5",
        length_norm="false",
        column="prex_rmi_s",
        metric="roc_auc",
        value=100 / 3,
        spread=0.5,
        n=12,
        groups=4,
        runs="seed_1;seed_2",
        members=2,
        reason='so, "it" is',
        data="help",
        signature="sig",
        roles="M N",
        task_label="EN-DE",
        family="translation",
    )
    write_cells(path, [cell, absent_set_cell("asr", "AMI", "no licence", "AMI2")])
    assert path.read_text(encoding="utf-8").split("\n") == [
        "task,test_set,ensemble,hypotheses,regime,T,B,length_norm,column,metric,"
        "value,spread,low,high,n,groups,runs,members,reason,data,signature,roles,task_label,family",
        "nmt_ende,MED,random_init,prex,beam,10,5,false,prex_rmi_s,roc_auc,"
        '33.33333333,0.5,,,12,4,seed_1;seed_2,2,"so, ""it"" is",help,sig,M N,EN-DE,translation',
        "asr,AMI,-,-,-,,,true,,,,,,,0,0,,0,no licence,,,AMI2,,",
        "",
    ]


def test_numbers_are_written_as_in_the_file_of_the_paper() -> None:
    assert [number_text(number) for number in (10.0, 0.5, 1 / 3)] == ["10", "0.5", "0.3333333333"]


@pytest.mark.parametrize(
    ("ensemble", "hypotheses", "setting", "name"),
    [
        ("random_init", "expr", {}, "m/MED/random_init_expr_beam/c"),
        ("single", "-", {}, "m/MED/single_beam/c"),
        ("-", "-", {"B": "1"}, "m/MED/_beam/c_B1"),
        ("x", "-", {"T": "2", "length_norm": "false"}, "m/MED/x_beam/c_T2_no_length_norm"),
    ],
)
def test_tracked_name_of_a_cell(
    ensemble: str, hypotheses: str, setting: dict[str, str], name: str
) -> None:
    cell = Cell("a", "MED", ensemble, hypotheses, "beam", column="c", metric="m", **setting)  # type: ignore[arg-type]
    assert cell.tracked_name == name

"""Which cells of a table are in bold: the best one and its ties in the paired test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline.metrics.cell import Cell, Key
from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.best import competing, mark_best
from pipeline.report.cells import CellIndex
from pipeline.report.paper_claims import claims_of_the_paper
from pipeline.report.paper_tables import paper_table
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.report.verdicts import verdicts

# Values of a metric on resamples, around 0. They are shared by all cells: a paired test sees only
# what is particular to a cell.
SHARED = np.linspace(-5, 5, 201)
OWN = np.sin(np.arange(201.0))


def cell(column: str, value: float | None, metric: str = "prr", **changes: str) -> TableCell:
    key = ("nmt_ende", "newstest14", "random_init", "prex", "beam")
    numbers = {} if value is None else {"low": value - 5, "high": value + 5}
    return TableCell(
        Cell(*key, column=column, metric=metric, value=value, groups=50, **numbers, **changes)
    )


def marked(cells: Sequence[TableCell | None], draws: dict[Key, FloatArray]) -> list[bool | None]:
    rows = (Row(("row",), tuple(competing(cells))),)
    table = Table("tab:x", "X", ((Heading("", 1 + len(cells)),),), rows)
    return [shown and shown.best for shown in mark_best(table, draws).rows[0].cells]


def test_the_paired_difference_decides_and_not_the_interval_of_the_best() -> None:
    best, close, worse = cell("a", 20.0), cell("b", 19.9), cell("c", 18.0)
    draws = {
        best.cell.key: 20 + SHARED,
        close.cell.key: 19.9 + SHARED + OWN,  # sometimes better than the best
        worse.cell.key: 18 + SHARED + OWN,  # within the interval of the best, and always worse
    }
    assert marked([best, close, worse], draws) == [True, True, False]


def test_an_uncertain_difference_is_a_tie_although_the_value_is_outside_of_the_interval() -> None:
    best, other = cell("a", 20.0), cell("b", 14.0)
    draws = {best.cell.key: 20 + SHARED, other.cell.key: 14 - 3 * SHARED}
    assert marked([best, other], draws) == [True, True]


@pytest.mark.parametrize("metric", ["nll", "wer_percent"])
def test_the_lowest_value_is_best_where_lower_is_better(metric: str) -> None:
    cells = [cell("a", 2.0, metric), cell("b", 1.0, metric), cell("c", 1.1, metric)]
    draws = {shown.cell.key: (shown.cell.value or 0) + SHARED for shown in cells}
    draws[cells[2].cell.key] = 1.1 + SHARED + OWN
    assert marked(cells, draws) == [False, True, True]


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([50, 50, 49], [True, True, False]),
        ([None, 50, 49], [False, True, False]),
        ([None, 50], [False, False]),  # nothing to compare with
        ([50, 50], [False, False]),
        ([], []),
    ],
)
def test_without_resamples_only_the_best_value_is_marked(
    values: list[float | None], best: list[bool]
) -> None:
    cells = [cell(f"column_{number}", value) for number, value in enumerate(values)]
    assert marked(cells, {}) == best


def test_a_single_group_has_no_interval_and_hence_no_ties() -> None:
    cells = [cell("a", 20.0), cell("b", 19.9)]
    cells = [replace(shown, cell=replace(shown.cell, groups=1)) for shown in cells]
    draws = {shown.cell.key: 20 + OWN * number for number, shown in enumerate(cells)}
    assert marked(cells, draws) == [True, False]


def test_a_rate_or_a_constant_measure_does_not_compete() -> None:
    assert marked([cell("a", 50), cell("b", 60, "percent"), cell("c", 40)], {}) == [
        True,
        False,
        False,
    ]
    constant = cell("a", 50, reason=CONSTANT)
    assert marked([constant, cell("b", 40), cell("c", 30)], {}) == [False, True, False]


def test_bold_and_the_claims_do_not_contradict_each_other(
    frame_of: Callable[..., pd.DataFrame],
) -> None:
    shared = {"regime": "beam", "column": "bleu", "metric": "bleu", "groups": 50, "runs": "a;b"}
    at = {"task": "nmt_ende", "test_set": "newstest14", **shared}
    single = Cell(
        ensemble="single", hypotheses="-", value=17.2, low=14.5, high=20.0, members=1, **at
    )
    ensemble = Cell(
        ensemble="random_init", hypotheses="prex", value=19.3, low=16.4, high=22.3, members=2, **at
    )
    frame = frame_of(single, ensemble)
    # Both vary with the sentences that are drawn, and their difference hardly does.
    draws = {single.key: 17.2 + SHARED / 2 + OWN / 10, ensemble.key: 19.3 + SHARED / 2}
    name = "ensembles_beat_singles"
    replicates = {single.key: {"a": 17.0, "b": 17.4}, ensemble.key: {"a;b": 19.3}}
    (verdict,) = verdicts({name: claims_of_the_paper()[name]}, frame, draws, replicates)
    table = mark_best(paper_table("tab-apn:nmt-bleu-nll", CellIndex(frame)), draws)
    bold = {shown.cell.ensemble for shown in table.cells if shown.best}
    assert (verdict.verdict, bold) == ("holds", {"random_init"})


def test_an_empty_column_stays_empty() -> None:
    assert marked([None, cell("a", 50), cell("b", 49)], {}) == [None, True, False]

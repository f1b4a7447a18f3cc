"""Tables of tasks and test sets that the paper does not have, and of a user's own measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from pipeline.metrics.cell import Cell
from pipeline.report.best import mark_best
from pipeline.report.general import (
    ood_detection,
    own_measures,
    performance,
    sentence_error_detection,
)
from pipeline.report.paper_numbers import paper_columns
from pipeline.report.table import Table

MakeFrame = Callable[..., pd.DataFrame]
OWN = Cell("en_es", "news", "random_init", "prex", "beam", task_label="EN-ES", family="translation")
SINGLE = replace(OWN, ensemble="single", hypotheses="-")
TABLES = (performance, sentence_error_detection, ood_detection, own_measures)


def number(cell: Cell, metric: str, value: float, column: str = "", **key: str) -> Cell:
    return replace(cell, metric=metric, column=column or metric, value=value, **key)


def shown(table: Table) -> dict[tuple[str, ...], list[float | None]]:
    return {row.labels: [cell and cell.cell.value for cell in row.cells] for row in table.rows}


def test_performance_has_quality_nll_and_own_metrics_of_each_model(frame_of: MakeFrame) -> None:
    table = performance(
        frame_of(
            number(SINGLE, "bleu", 20.0),
            number(OWN, "bleu", 22.0),
            number(OWN, "nll", 1.5, regime="teacher_forcing"),
            number(OWN, "my_metric", 7.0),
            number(replace(OWN, test_set="talks"), "bleu", 10.0),
            replace(OWN, test_set="shuffled", metric="bleu", column="bleu", reason="no reference"),
            number(replace(OWN, task="nmt_ende", test_set="help", roles="newstest14"), "bleu", 9.0),
        )
    )
    assert [heading.text for heading in table.header[0]] == [
        *("Task", "Test set", "Model", "BLEU", "NLL, nats per token", "my_metric")
    ]
    assert any("metrics.extra_metrics have no interval" in note for note in table.notes)
    assert shown(table) == {
        ("EN-ES", "news", "single"): [20.0, None, None],
        ("EN-ES", "news", "random-init PrEx"): [22.0, 1.5, 7.0],
        ("EN-ES", "talks", "random-init PrEx"): [10.0, None, None],
    }
    assert list(table.reasons) == [
        "news has no decode by teacher forcing",
        "my_metric was not computed for news",
        "talks has no decode by teacher forcing",
        "my_metric was not computed for talks",
    ]


@pytest.mark.parametrize(
    ("table_of", "metric", "label"),
    [
        (sentence_error_detection, "prr", "tab:sequence-error-detection"),
        (ood_detection, "roc_auc", "tab:ood-detection"),
    ],
)
def test_detection_has_the_measures_of_the_paper_and_own_ones(
    frame_of: MakeFrame,
    table_of: Callable[[pd.DataFrame], Table],
    metric: str,
    label: str,
) -> None:
    names = [*paper_columns(label), "mine"]
    cells = [number(OWN, metric, 50.0 + i, name, T="3", B="2") for i, name in enumerate(names)]
    without_norm = [replace(cell, length_norm="false", value=1.0) for cell in cells]
    (row,) = mark_best(table_of(frame_of(*cells, *without_norm)), {}).rows
    assert row.labels[:2] == ("EN-ES", "news")
    values = {cell.cell.column: cell.cell.value for cell in row.cells if cell}
    assert [values[name] for name in names] == [50.0 + i for i in range(len(names))]
    assert [cell.cell.column for cell in row.cells if cell and cell.best] == ["mine"]


def test_own_measures_are_shown_for_every_test_set_and_setting(frame_of: MakeFrame) -> None:
    in_paper = replace(OWN, task="nmt_ende", test_set="help", roles="newstest14", task_label="")
    table = own_measures(
        frame_of(
            number(in_paper, "prr", 30.0, "mine", B="1"),
            number(OWN, "roc_auc", 60.0, "mine", T="2", B="5", length_norm="false"),
            number(OWN, "roc_auc", 70.0, "prex_rmi_s", T="2", B="5"),
        )
    )
    assert [heading.text for heading in table.header[0]][-1] == "mine"
    assert shown(table) == {
        ("nmt_ende", "help", "random-init PrEx", "Sentence error detection", "", "1", "yes"): [30],
        ("EN-ES", "news", "random-init PrEx", "Out-of-domain detection", "2", "5", "no"): [60],
    }


@pytest.mark.parametrize("table_of", TABLES)
def test_a_run_of_the_papers_sets_alone_has_no_rows(
    frame_of: MakeFrame, table_of: Callable[[pd.DataFrame], Table]
) -> None:
    help_set = replace(OWN, task="nmt_ende", test_set="help", roles="newstest14 nwt14")
    cells = [
        number(help_set, "bleu", 1.0),
        number(help_set, "prr", 1.0, "prex_rmi_s"),
        number(help_set, "roc_auc", 1.0, "prex_rmi_s"),
    ]
    assert table_of(frame_of(*cells)).rows == ()

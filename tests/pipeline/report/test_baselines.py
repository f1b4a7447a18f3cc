"""The table of the measures of later work: rows per system, settings, costs and reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from pipeline.metrics.cell import Cell
from pipeline.metrics.evaluation import Evaluation
from pipeline.quality.registry import QUALITIES
from pipeline.report.baseline_table import baselines
from pipeline.report.baselines import baseline_rows
from pipeline.report.best import mark_best
from pipeline.report.cells import CellIndex
from pipeline.report.figures.baselines import baseline_dots
from pipeline.report.figures.drawing import make_figures
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.run.measure_rules import MeasureRules

MakeFrame = Callable[..., pd.DataFrame]
ENSEMBLE = ["prex_entropy_s", "var_logp_ln", "xchrf", "hypothesis_length"]
SINGLE = ["prex_entropy_s", "hypothesis_length"]


def cells_of(ensemble: str, hypotheses: str, columns: list[str], members: int) -> list[Cell]:
    """In-domain `help`, and `spoken` with another value at each B, T and length norm."""
    cells = []
    for place, column in enumerate(columns):
        for length_norm in ("true", "false"):
            shift = 0.0 if length_norm == "true" else 50.0
            common = {
                "ensemble": ensemble,
                "hypotheses": hypotheses,
                "regime": "beam",
                "length_norm": length_norm,
                "column": column,
                "members": members,
                "signature": "sig",
            }
            help_cell = Cell("nmt_ende", "help", B="1", metric="prr", **common)  # type: ignore[arg-type]
            cells.append(replace(help_cell, value=shift + place, low=shift, high=shift + 9))
            cells.append(replace(help_cell, metric="spearman", value=place / 10))
            for beam in ("1", "5"):
                for temperature in ("10", "1"):
                    value = shift + 10 * int(beam == "5") + 5 * int(temperature == "10") + place
                    cells.append(
                        replace(
                            help_cell,
                            test_set="spoken",
                            metric="roc_auc",
                            B=beam,
                            T=temperature,
                            value=value,
                        )
                    )
    return cells


@pytest.fixture
def cells() -> list[Cell]:
    return [
        *cells_of("single", "-", SINGLE, 1),
        *cells_of("random_init", "prex", ENSEMBLE, 4),
        *cells_of("random_init", "expr", ENSEMBLE, 4),
        *cells_of("checkpoint", "prex", ENSEMBLE, 4),
    ]


def test_rows_have_the_system_the_cost_and_the_settings_of_the_paper(
    cells: list[Cell], frame_of: MakeFrame
) -> None:
    table = baselines(frame_of(*cells))
    shown = {
        row.labels[1:]: [cell.cell.value for cell in row.cells if cell is not None]
        for row in table.rows
    }
    # B = 5 and T = 10.
    ours = "log-prob per token (TP), perplexity"
    assert shown["single member", ours, "1"] == [0, 0, 15]
    assert shown["single member", "log-prob of the sequence", "1"] == [50, 0, 65]
    assert shown["ensemble of 4", "total H, S-IW", "4"] == [0, 0, 15]
    assert shown["ensemble of 4", "variance of ln P by length (D-Var)", "4"] == [1, 0.1, 16]
    assert shown["ensemble of 4", "X-chrF (D-Lex-Sim)", "8"] == [2, 0.2, 17]
    assert [heading.text for heading in table.header[0]][4:] == [
        "PRR, %",
        "Spearman",
        "ROC-AUC, spoken",
    ]
    assert [row.labels for row in table.rows if row.rule] == [
        ("nmt_ende", "ensemble of 4", "length of the source", "0")
    ]
    marked = mark_best(table, {})
    best = [row.labels[1:3] for row in marked.rows if row.cells[2] and row.cells[2].best]
    assert best == [
        ("single member", "log-prob of the sequence"),
        ("ensemble of 4", "length of the hypothesis"),
    ]


def test_what_the_run_lacks_has_a_reason(cells: list[Cell], frame_of: MakeFrame) -> None:
    table = baselines(frame_of(*cells))
    reasons = {row.labels[2]: row.cells[0].cell.reason for row in table.rows if row.cells[0]}
    assert reasons["Monte-Carlo entropy, S-MC"] == (
        "the run has no samples of this ensemble; see docs/baselines.md"
    )
    assert reasons["D-Combo"] == "d_combo was not computed for help"
    sampled = cells_of("random_init", "prex", ["prex_entropy_smc"], 4)
    table = baselines(frame_of(*cells, *sampled))
    (row,) = (row for row in table.rows if row.labels[2] == "Monte-Carlo entropy, S-MC")
    assert row.labels[3] == "4 per sample"
    assert row.cells[0] is not None
    assert row.cells[0].cell.value == 0


def test_a_run_without_errors_or_single_members_has_no_rows_of_them(
    cells: list[Cell], frame_of: MakeFrame
) -> None:
    assert baselines(frame_of()).rows == ()
    assert baselines(frame_of(*(c for c in cells if c.metric == "roc_auc"))).rows == ()
    by_ensemble = [cell for cell in cells if cell.ensemble != "single"]
    rows = list(baseline_rows(CellIndex(frame_of(*by_ensemble)), "nmt_ende"))
    assert {row.system for row in rows} == {"ensemble of 4"}


def test_the_figure_has_the_numbers_of_the_cells(cells: list[Cell], tmp_path: Path) -> None:
    evaluation = Evaluation(QUALITIES["bleu"], 0, 0, "measures")
    evidence = TaskEvidence(
        "nmt_ende", {}, tmp_path, "help", evaluation, MeasureRules(), cells=cells
    )
    (listed,) = make_figures(tmp_path, evidence, {"baselines": baseline_dots})
    data = pd.read_csv(tmp_path / "nmt_ende_baselines.csv")
    assert listed["files"][0] == "nmt_ende_baselines.csv"
    assert (tmp_path / "nmt_ende_baselines.svg").stat().st_size > 0
    index = CellIndex(pd.DataFrame([asdict(cell) for cell in cells]))
    expected = [
        cell.value
        for row in baseline_rows(index, "nmt_ende")
        for cell in (row.prr, *row.roc_auc.values())
        if cell.value is not None
    ]
    assert data["percent"].tolist() == expected
    assert set(data["group"]) == {"naive", "single model", "paper", "later work"}
    assert baseline_dots(replace(evidence, cells=())).reason.startswith("no in-domain test set")
    no_prr = [replace(cell, value=None) if cell.metric == "prr" else cell for cell in cells]
    make_figures(tmp_path, replace(evidence, cells=no_prr), {"baselines": baseline_dots})
    assert set(pd.read_csv(tmp_path / "nmt_ende_baselines.csv")["metric"]) == {"roc_auc"}

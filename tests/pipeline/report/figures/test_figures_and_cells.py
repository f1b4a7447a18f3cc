"""Figures that compute measures at further settings agree with the cells of the same run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from pipeline.metrics.cell import Cell, number_text
from pipeline.metrics.sentence_detection import sentence_detection_cells
from pipeline.report.figures import TaskEvidence
from pipeline.report.figures.sensitivity import sensitivity_to_beam, sensitivity_to_temperature
from pipeline.run.measure_rules import MeasureRules
from pipeline.store import open_own_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid

RULES = [
    MeasureRules(),
    MeasureRules(eos="zero"),  # uncertainty=released
    MeasureRules(weights_from="expr"),
    MeasureRules(equal_texts="merge"),
]


def run_with(evidence: TaskEvidence, rules: MeasureRules, folder: Path) -> TaskEvidence:
    """Measure the ensembles' decodes by these rules."""
    for part, decode in evidence.decodes.items():
        if decode.is_ensemble and decode.cell.ensemble != "subset":
            (folder / part).mkdir()
            with open_own_store(decode.path) as store:
                write_measures(store, folder / part, Grid([1, 3], [1.0, 10.0], [True], rules))
    return replace(evidence, uncertainty=folder, rules=rules)


def cells_of(evidence: TaskEvidence) -> dict[tuple[str, ...], Cell]:
    measured = {
        part: decode
        for part, decode in evidence.decodes.items()
        if decode.is_ensemble and decode.cell.ensemble != "subset"
    }
    evaluation = evidence.evaluation
    cells = sentence_detection_cells(
        measured, evidence.uncertainty, evidence.baseline, True, evaluation
    )
    return {
        (cell.test_set, cell.metric, cell.T, cell.B, cell.column): cell
        for cell in cells
        if (cell.hypotheses, cell.regime) == ("prex", "beam")
    }


def compared(data: pd.DataFrame, cells: dict[tuple[str, ...], Cell], figure: str) -> list[float]:
    """Compare the points of a figure that are also cells; return their values."""
    values = []
    for point in data.itertuples():
        is_ood = point.metric == "roc_auc"
        at = number_text(point.at)
        beam, temperature = (at, "1") if figure == "beam" else ("3", at)
        if not is_ood and beam != "1":
            continue  # cells of error detection have B = 1
        key = (point.test_set, point.metric, temperature if is_ood else "", beam, point.measure)
        if key in cells:
            of_cell = (cells[key].value, cells[key].low, cells[key].high)
            of_point = (point.percent, point.low, point.high)
            assert of_cell == pytest.approx(of_point, rel=1e-5), key
            values.append(point.percent)
    return values


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.signature)
def test_sensitivity_equals_the_cells(
    evidence: TaskEvidence, tmp_path: Path, rules: MeasureRules
) -> None:
    run = run_with(evidence, rules, tmp_path)
    cells = cells_of(run)
    # Four measures: PRR of two in-domain sets at B = 1, ROC-AUC at B = 1 and 3, or at T = 1 and 10.
    assert len(compared(sensitivity_to_beam(run).data, cells, "beam")) == 4 * (2 + 2)
    assert len(compared(sensitivity_to_temperature(run).data, cells, "temperature")) == 4 * 2


@pytest.mark.parametrize("rules", RULES[1:3], ids=lambda rules: rules.signature)
def test_the_rules_change_the_figure(evidence: TaskEvidence, rules: MeasureRules) -> None:
    """The comparison above would fail if the figure ignored the rules."""
    default = sensitivity_to_beam(evidence).data
    assert not sensitivity_to_beam(replace(evidence, rules=rules)).data.equals(default)

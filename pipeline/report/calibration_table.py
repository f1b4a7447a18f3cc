"""A table beyond the paper: the expected calibration error of tokens and of sequences."""

from __future__ import annotations

import pandas as pd

from pipeline.metrics.calibration_cells import LEVELS
from pipeline.report.cells import CellIndex
from pipeline.report.measure_names import MODELS
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.report.task_names import task_name

_NOTES = (
    "Token: whether it matches the reference in a Levenshtein alignment of sub-word units.",
    "Sequence: sentence BLEU / 100 or 1 - WER (at least 0) against the geometric mean of the "
    "token probabilities; only differences between systems tell something.",
)


def calibration(cells: pd.DataFrame) -> Table:
    """Expected calibration error in percent of every in-domain test set, model and level."""
    index = CellIndex(cells)
    keys = [cell.key for cell in index.cells if cell.metric == "ece"]
    rows: list[Row] = []
    for task, test_set in dict.fromkeys((key.task, key.test_set) for key in keys):
        first = next(key for key in keys if (key.task, key.test_set) == (task, test_set))
        for level in LEVELS:
            own = [
                first._replace(
                    ensemble=index.ensemble(task, ensemble) if hypotheses != "-" else ensemble,
                    hypotheses=hypotheses,
                    column=f"{level}_confidence",
                )
                for ensemble, hypotheses in MODELS
            ]
            labels = (task_name(task), test_set, level)
            rule = bool(rows) and rows[-1].labels[1] != test_set
            rows.append(Row(labels, tuple(TableCell(index.cell(key)) for key in own), rule))
    of = (Heading("Task"), Heading("Test set"), Heading("Of"))
    return Table(
        "beyond:calibration",
        "Expected calibration error of confidence in percent",
        ((*of, *(Heading(name) for name in MODELS.values())),),
        tuple(rows),
        _NOTES,
    )

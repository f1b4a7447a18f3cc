"""The table of the measures of later work beside those of the paper."""

from __future__ import annotations

from itertools import groupby

import pandas as pd

from pipeline.report.baselines import BaselineRow, baseline_rows
from pipeline.report.best import BEST_NOTE, competing
from pipeline.report.cells import CellIndex
from pipeline.report.table import Heading, Row, Table, TableCell


def baselines(cells: pd.DataFrame) -> Table:
    """PRR, correlation with the error and ROC-AUC of all measures, with their forward passes."""
    index = CellIndex(cells)
    of_tasks = {task: list(baseline_rows(index, task)) for task in index.tasks}
    test_sets = list(
        dict.fromkeys(name for rows in of_tasks.values() for row in rows for name in row.roc_auc)
    )
    rows: list[Row] = []
    systems = [
        (task, list(of_system))
        for task, of_task in of_tasks.items()
        for _, of_system in groupby(of_task, lambda row: row.system)
    ]
    for task, of_system in systems:
        columns = [
            competing([TableCell(row.prr) for row in of_system]),
            competing([TableCell(row.correlation, decimals=3) for row in of_system]),
            *(competing([_shown(row, name) for row in of_system]) for name in test_sets),
        ]
        for number, row in enumerate(of_system):
            passes = row.baseline.passes(row.members)
            labels = (index.label(task), row.system, row.baseline.name, passes)
            shown = tuple(column[number] for column in columns)
            rows.append(Row(labels, shown, rule=bool(rows) and number == 0))
    names = ("Task", "System", "Measure", "Passes", "PRR, %", "Spearman")
    return Table(
        "beyond:baselines",
        "Measures of later work beside those of the paper: PRR, correlation and ROC-AUC",
        (tuple(Heading(name) for name in (*names, *(f"ROC-AUC, {name}" for name in test_sets))),),
        tuple(rows),
        (
            "Passes: forward passes of one model per token of a hypothesis, those that give the "
            "hypothesis included. A search with a beam makes them for every prefix of the beam.",
            "Single members reject their own hypotheses: means over the members. Ensembles "
            "decode with PrEx, the product of expectations.",
            "PRR and Spearman's correlation with the error of the sentence: in-domain test set, "
            "one hypothesis per sentence. ROC-AUC in percent: B and T as in the table of the paper "
            "(the largest B and the first T of the grid). With length normalisation, except the "
            "log-prob of the sequence.",
            BEST_NOTE.format(group="column for a system"),
        ),
    )


def _shown(row: BaselineRow, test_set: str) -> TableCell | None:
    return TableCell(row.roc_auc[test_set]) if test_set in row.roc_auc else None

"""Tables of how far the rules of the released code move the numbers (metrics=released)."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from pipeline.metrics.cell import NO_REFERENCE, Cell
from pipeline.report.cells import CellIndex
from pipeline.report.measure_headings import measure_header
from pipeline.report.paper import paper_cells
from pipeline.report.table import Row, Table, TableCell
from pipeline.report.task_names import task_name

# Metric of the cells of a rule -> (the right metric, the rule in words).
_RULES = {
    "prr_sbleu_floor": ("prr", "sentence BLEU with floor 1.1"),
    "prr_shifted": ("prr", "curve without its end, ties in file order"),
    "prr_released": ("prr", "both rules"),
    "aupr_trapezoid": ("aupr", "trapezoids of precision and recall"),
}
_NOTES = (
    "Each cell: the number by the released rule less the right one; both stand on the same "
    "sentences.",
    "With length normalisation; test sets without references have no rows.",
    "Made with metrics=released; a run without it has no such rows.",
)


def sentence_rules(cells: pd.DataFrame) -> Table:
    """Points of prediction rejection ratio that each released rule adds."""
    return _table(
        "beyond:released-rules",
        "What the released code's rules add to the prediction rejection ratio, in points",
        _columns("tab:sequence-error-detection"),
        "prr",
        CellIndex(cells),
    )


def token_rules(cells: pd.DataFrame) -> Table:
    """Points of average precision that the released rule adds."""
    return _table(
        "beyond:released-token-rules",
        "What the released code's rule adds to the average precision of tokens, in points",
        [one for one in _columns("tab-apn:token-error-detection-prex") if "rate" not in one],
        "aupr",
        CellIndex(cells),
    )


def _table(label: str, title: str, columns: list[str], right: str, index: CellIndex) -> Table:
    rows: list[Row] = []
    for metric, (of_right, rule) in _RULES.items():
        found = [
            cell.key._replace(column="")
            for cell in index.cells
            if (cell.metric, of_right, cell.length_norm) == (metric, right, "true")
            and cell.reason != NO_REFERENCE
        ]
        groups = dict.fromkeys(found)
        for key in groups:
            labels = (task_name(key.task), key.test_set, key.ensemble, key.hypotheses, rule)
            both = [
                (index.cell(key._replace(column=one)), key._replace(column=one, metric=right))
                for one in columns
            ]
            shown = [TableCell(_difference(cell, index.cell(other))) for cell, other in both]
            rows.append(Row(labels, tuple(shown), rule=bool(rows) and key == next(iter(groups))))
    names = ("Task", "Test set", "Ensemble", "Hypotheses", "Rule")
    return Table(label, title, measure_header(names, columns, "1"), tuple(rows), _NOTES)


def _difference(released: Cell, right: Cell) -> Cell:
    """Released less right, without an interval; the reason of the one that has no value."""
    metric = f"{released.metric}_less_{right.metric}"
    cell = replace(released, metric=metric, spread=None, low=None, high=None)
    if released.value is None or right.value is None:
        return replace(cell, value=None, reason=released.reason or right.reason)
    return replace(cell, value=released.value - right.value, reason="")


def _columns(label: str) -> list[str]:
    return list(dict.fromkeys(cell.key.column for cell in paper_cells(label)))

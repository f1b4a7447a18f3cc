"""The few numbers of a task that one looks at first."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.metrics.cell import Cell

# Of metrics that have many columns, the one that is looked at first.
_MEASURES = {
    "prr": "prex_entropy_s",
    "roc_auc": "prex_rmi_s",
    "aupr": "prex_score",
    "percent": "token_error_rate_percent",
}
# Metrics that have one column, of another name.
_OF_ONE_COLUMN = ("copied_percent",)


def headline(cells: Iterable[Cell]) -> dict[str, float]:
    """Flat name -> value of cells with a value: quality, NLL and one measure a metric and test set.

    Names are made of letters, digits, `_`, `-`, `.` and `/`, fit for DVC and MLflow.
    """
    numbers = {}
    for cell in cells:
        if cell.value is None or cell.length_norm != "true":
            continue
        name = f"{cell.test_set}/{cell.ensemble}"
        name += f"_{cell.hypotheses}" if cell.hypotheses != "-" else ""
        if cell.metric in (cell.column, *_OF_ONE_COLUMN):
            numbers[f"{name}/{cell.metric}"] = cell.value
        elif cell.column == _MEASURES.get(cell.metric):
            setting = (f"_B{cell.B}" if cell.B else "") + (f"_T{cell.T}" if cell.T else "")
            numbers[f"{name}/{cell.metric}_{cell.column}{setting}"] = cell.value
    return numbers

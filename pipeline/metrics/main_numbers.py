"""The numbers of a run that people compare, under names that are the same for all settings."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.metrics.cell import COPY_THROUGH, Cell, number_text

# Metric with many columns -> the column that is shown.
COLUMNS = {
    "prr": "prex_entropy_s",
    "roc_auc": "prex_rmi_s",
    "aupr": "prex_score",
    "percent": "token_error_rate_percent",
    "copied_percent": COPY_THROUGH,
}
_LESS_IMPORTANT = ("chrf", "cer_percent", "aupr", "token_error_rate_percent", "copied_percent")
SINGLE = "_single"  # ends the name of a mean over single members
# Of the hypotheses of the main ensemble: those of PrEx where both posteriors decoded.
_PREFERRED = "prex"


def main_numbers(
    cells: Iterable[Cell], ensemble: str, baseline: str, temperature: float
) -> dict[str, float]:
    """Return name -> value for the main ensemble: quality, NLL, and one measure for each metric.

    Numbers of the in-domain set `baseline` are named like the metric, such as `bleu`, and its
    `bleu_single` is the mean over single members. Other test sets follow, such as
    `roc_auc/permuted`; `roc_auc` is the mean over them. B and T are no part of a name: numbers are
    those of the largest B and of `temperature`, the first T of the settings. Cells without a value
    are left out.
    """
    chosen = _chosen(cells, ensemble, baseline, temperature)
    numbers = {name: cell.value for name, cell in chosen.items() if cell.value is not None}
    areas = [value for name, value in numbers.items() if name.startswith("roc_auc/")]
    if areas:
        numbers["roc_auc"] = sum(areas) / len(areas)
    return {name: numbers[name] for name in by_importance(numbers)}


def main_intervals(
    cells: Iterable[Cell], ensemble: str, baseline: str, temperature: float
) -> dict[str, tuple[float, float]]:
    """Return name -> interval of those `main_numbers` that have one."""
    chosen = _chosen(cells, ensemble, baseline, temperature)
    return {
        name: (cell.low, cell.high)
        for name, cell in chosen.items()
        if cell.low is not None and cell.high is not None
    }


def _chosen(
    cells: Iterable[Cell], ensemble: str, baseline: str, temperature: float
) -> dict[str, Cell]:
    """Return name -> the cell that gives the number of this name."""
    chosen: dict[str, Cell] = {}
    for cell in cells:
        name = _name(cell, ensemble, baseline)
        if name is None or cell.value is None or cell.T not in ("", number_text(temperature)):
            continue
        if name not in chosen or _rank(cell) > _rank(chosen[name]):
            chosen[name] = cell
    return chosen


def by_importance(names: Iterable[str]) -> list[str]:
    """Return names of numbers, the most important first, and otherwise in their order."""
    return sorted(names, key=_order)


def headline(numbers: dict[str, float]) -> dict[str, float]:
    """Return the few numbers that fit on one line of a terminal: quality, NLL, PRR and ROC-AUC."""
    return {name: value for name, value in numbers.items() if _order(name)[0] == 0}


def _name(cell: Cell, ensemble: str, baseline: str) -> str | None:
    """The name of the number that a cell can give; None if it gives none."""
    if cell.length_norm != "true" or cell.hypotheses == "reference":
        return None
    metric = cell.column if cell.metric == "percent" else cell.metric
    if cell.metric != cell.column and cell.column != COLUMNS.get(cell.metric):
        return None
    is_baseline = cell.test_set == baseline
    if cell.ensemble == "single":
        return f"{metric}{SINGLE}" if is_baseline else None
    if cell.ensemble != ensemble:
        return None
    return metric if is_baseline else f"{metric}/{cell.test_set}"


def _rank(cell: Cell) -> tuple[bool, int]:
    return cell.hypotheses == _PREFERRED, int(cell.B or 0)


def _order(name: str) -> tuple[int, bool]:
    """Where a number stands: the headline, out-of-domain detection, quality elsewhere, the rest."""
    metric, _, test_set = name.partition("/")
    if metric.removesuffix(SINGLE) in _LESS_IMPORTANT:
        return 3, bool(test_set)
    if not test_set:
        return (2, False) if metric.endswith(SINGLE) else (0, False)
    return (1, False) if metric == "roc_auc" else (2, True)

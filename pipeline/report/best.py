"""Choose the cells in bold: the best of a group, and its ties in the paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.metrics.bootstrap import percentile_interval
from pipeline.metrics.cell import LOWER_IS_BETTER, Cell, Key
from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.table import Table, TableCell

Draws = Mapping[Key, FloatArray]
BEST_NOTE = (
    "Bold: the best value of the {group}, and values whose difference from it has a 95 % interval "
    "that includes 0 (paired bootstrap)."
)


def competing(cells: Sequence[TableCell | None]) -> list[TableCell | None]:
    """Let cells of one test set compete with each other for the best value.

    Only cells with the metric of the first one compete, so that a rate next to detection measures
    is never the best; nor is a measure that is the same for every sentence.
    """
    metric = next((table_cell.cell.metric for table_cell in cells if table_cell is not None), "")
    rivals = tuple(
        table_cell.cell
        for table_cell in cells
        if table_cell is not None and _competes(table_cell.cell, metric)
    )
    return [
        replace(table_cell, rivals=rivals)
        if table_cell is not None and _competes(table_cell.cell, metric)
        else table_cell
        for table_cell in cells
    ]


def mark_best(table: Table, draws: Draws) -> Table:
    """Mark the best of each group of competing cells and its ties.

    `draws` are the values of the cells on the same bootstrap resamples: key -> [resample]. A cell
    is a tie if the 95 % interval of its difference from the best cell includes 0. Nothing is marked
    in a group whose values are all equal.
    """
    best_of: dict[tuple[Key, ...], set[Key]] = {}

    def marked(table_cell: TableCell | None) -> TableCell | None:
        if table_cell is None or not table_cell.rivals:
            return table_cell
        group = tuple(rival.key for rival in table_cell.rivals)
        if group not in best_of:
            best_of[group] = _best(table_cell.rivals, draws)
        return replace(table_cell, best=table_cell.cell.key in best_of[group])

    rows = (replace(row, cells=tuple(map(marked, row.cells))) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _competes(cell: Cell, metric: str) -> bool:
    return cell.value is not None and cell.metric == metric and cell.reason != CONSTANT


def _best(rivals: Sequence[Cell], draws: Draws) -> set[Key]:
    """The keys of the best cell and of its ties."""
    values = {rival.key: rival.value or 0.0 for rival in rivals}
    if len(set(values.values())) < 2:
        return set()
    choose = min if rivals[0].metric in LOWER_IS_BETTER else max
    best = choose(rivals, key=lambda rival: values[rival.key])
    return {
        rival.key
        for rival in rivals
        if values[rival.key] == values[best.key] or _is_tie(rival, best, draws)
    }


def _is_tie(cell: Cell, best: Cell, draws: Draws) -> bool:
    """Whether the paired difference of two cells has an interval, and it includes 0."""
    if cell.key not in draws or best.key not in draws:
        return False
    difference = draws[best.key] - draws[cell.key]
    interval = percentile_interval(difference, min(best.groups, cell.groups))
    return (
        interval.low is not None
        and interval.high is not None
        and (interval.low <= 0 <= interval.high)
    )

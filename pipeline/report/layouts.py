"""The two layouts of the paper's result tables, filled with the cells of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.metrics.cell import COPY_THROUGH, Key
from pipeline.report.best import BEST_NOTE, competing
from pipeline.report.cells import CellIndex
from pipeline.report.ensemble_names import ensemble_name
from pipeline.report.names import METRICS, measure_header, spans
from pipeline.report.paper_numbers import PaperCell, PaperTable
from pipeline.report.table import Heading, Row, Table, TableCell

# These measures do not depend on T and B: they are shown in the first row of a test set only.
_ONE_PER_TEST_SET = ("xbleu", "xwer", COPY_THROUGH)
_ONE_ROW_NOTE = (
    "X-BLEU, X-WER and the copied share depend on neither T nor B: they stand in the first row of "
    "a test set."
)
_HEADINGS = {
    "task": "Task",
    "test_set": "Test set",
    "T": "T",
    "B": "B",
    "length_norm": "Length norm.",
    "ensemble": "Ensemble",
}
_LABELS = {"true": "yes", "false": "no"}
# The paper's metric -> our own metric that is shown next to it.
_COMPANION_METRIC = {"bleu": "chrf", "wer_percent": "cer_percent"}


@dataclass(frozen=True)
class MeasureLayout:
    """One row per test set and setting, one column per measure.

    `labels` are the parts of the key that tell rows apart. `beyond` are measures that the paper's
    table does not have; they do not compete for the best value.
    """

    title: str
    labels: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def table(self, label: str, of_paper: Sequence[PaperCell], index: CellIndex) -> Table:
        """Our cells at the keys of the paper's cells.

        Rows of tasks that were not run are left out. If no task of the table was run, all rows are
        kept and their cells give the reason.
        """
        paper = PaperTable(of_paper, index)
        rows: list[Row] = []
        previous_task = None
        for task, test_set in paper.test_sets:
            own = self._rows(paper, task, test_set, index)
            rule = bool(rows) and (len(own) > 1 or task != previous_task)
            previous_task = task
            rows += [replace(own[0], rule=rule), *own[1:]]
        is_left_out = any(cell is None for row in rows for cell in row.cells)
        has_beam = "B" in self.labels or len({key.B for key in paper.keys}) > 1
        return Table(
            label,
            self.title,
            measure_header(
                [_HEADINGS[name] for name in self.labels],
                [*paper.columns, *self.beyond],
                "B" if has_beam else "1",
            ),
            tuple(rows),
            (
                BEST_NOTE.format(group="test set"),
                *self.notes,
                *([_ONE_ROW_NOTE] if is_left_out else []),
            ),
        )

    def _rows(self, paper: PaperTable, task: str, test_set: str, index: CellIndex) -> list[Row]:
        """The rows of one test set; the cells of all of them compete for the best value."""
        metrics = {key.column: key.metric for key in paper.keys}
        metrics |= dict.fromkeys(self.beyond, next(iter(metrics.values())))
        by_labels: dict[tuple[str, ...], list[TableCell | None]] = {}
        for key in paper.keys_of(task, test_set):
            labels = self._row_labels(paper.cell(key), index)
            # Several settings of the paper become one row if the run has fewer settings.
            if labels not in by_labels:
                by_labels[labels] = [
                    None
                    if by_labels and column in _ONE_PER_TEST_SET
                    else paper.cell(key._replace(column=column, metric=metric))
                    for column, metric in metrics.items()
                ]
        width = len(paper.columns)
        rivals = competing([cell for cells in by_labels.values() for cell in cells[:width]])
        return [
            Row(labels, (*rivals[row * width : (row + 1) * width], *cells[width:]))
            for row, (labels, cells) in enumerate(by_labels.items())
        ]

    def _row_labels(self, cell: TableCell, index: CellIndex) -> tuple[str, ...]:
        shown = {
            "task": index.label(cell.cell.task),
            "test_set": cell.test_set_label,
            "ensemble": ensemble_name(cell.cell.ensemble),
        }
        values = (shown.get(name) or str(getattr(cell.cell, name)) for name in self.labels)
        return tuple(_LABELS.get(value, value) for value in values)


@dataclass(frozen=True)
class PerformanceLayout:
    """One row per model, one column per metric and test set.

    `models` maps (ensemble, hypotheses) to the label of the row. `with_own_metrics` adds columns
    for chrF, CER and the metrics of metrics.extra_metrics, if the run has them.
    """

    title: str
    models: dict[tuple[str, str], str]
    with_own_metrics: bool = False

    def table(self, label: str, of_paper: Sequence[PaperCell], index: CellIndex) -> Table:
        """Our cells of every model in every column of the paper's table.

        Columns of tasks that were not run are left out. If no task of the table was run, all
        columns are kept and their cells give the reason.
        """
        paper = PaperTable(of_paper, index)
        first_model = next(iter(self.models))
        columns = [key for key in paper.keys if (key.ensemble, key.hypotheses) == first_model]
        if self.with_own_metrics:
            columns += [*_companion_columns(columns, index), *_own_columns(columns, index)]
        cells_by_column = [
            [
                paper.cell(key._replace(ensemble=ensemble, hypotheses=hypotheses))
                for ensemble, hypotheses in self.models
            ]
            for key in columns
        ]
        columns_of_rivals = [competing(cells) for cells in cells_by_column]
        rows = [
            Row((name,), tuple(cells[row] for cells in columns_of_rivals))
            for row, name in enumerate(self.models.values())
        ]
        headings = [
            (METRICS.get(key.metric, key.metric), _column_heading(cells[0], index))
            for key, cells in zip(columns, cells_by_column, strict=True)
        ]
        return Table(
            label,
            self.title,
            (
                (Heading("Model"), *spans([metric for metric, _ in headings])),
                (Heading(""), *(Heading(test_set) for _, test_set in headings)),
            ),
            tuple(rows),
            (BEST_NOTE.format(group="column"),),
        )


def _companion_columns(columns: Sequence[Key], index: CellIndex) -> list[Key]:
    """The columns of chrF and CER, for the test sets that have the paper's metric."""
    keys = [
        key._replace(column=_COMPANION_METRIC[key.metric], metric=_COMPANION_METRIC[key.metric])
        for key in columns
        if key.metric in _COMPANION_METRIC
    ]
    return [
        key for key in keys if index.keys(task=key.task, test_set=key.test_set, metric=key.metric)
    ]


def _own_columns(columns: Sequence[Key], index: CellIndex) -> list[Key]:
    """The columns of metrics.extra_metrics for the test sets of the table."""
    keys = [
        key._replace(column=own.column, metric=own.metric)
        for key in columns
        for own in index.keys(task=key.task, test_set=key.test_set, regime=key.regime)
        if own.column == own.metric and own.metric not in (*METRICS, *index.scores)
    ]
    return list(dict.fromkeys(keys))


def _column_heading(cell: TableCell, index: CellIndex) -> str:
    return f"{index.label(cell.cell.task)}, {cell.test_set_label}"

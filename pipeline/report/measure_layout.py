"""The shape of a table of measures: a row a test set and setting, a column a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.metrics.cell import COPY_THROUGH
from pipeline.report.cells import CellIndex
from pipeline.report.measure_headings import measure_header
from pipeline.report.paper import PaperCell
from pipeline.report.paper_table import PaperTable
from pipeline.report.table import Row, Table, TableCell, mark_best
from pipeline.report.task_names import TASKS

BEST_NOTE = (
    "Bold: the best of its {group}, and alike what lies within the 95 % interval of the best."
)
# Measures of the members' own decodes or of the best hypothesis alone: the same at every setting.
_ONE_A_TEST_SET = ("xbleu", "xwer", COPY_THROUGH)
_HEADINGS = {
    "task": "Task",
    "test_set": "Test set",
    "T": "T",
    "B": "B",
    "length_norm": "Length norm.",
    "ensemble": "Ensemble",
}
_TEXTS = {
    **TASKS,
    "true": "yes",
    "false": "no",
    "random_init": "Random init.",
    "checkpoint": "Checkpoints",
}


@dataclass(frozen=True)
class MeasureLayout:
    """A table whose rows are told apart by the parts of the key in `labels`.

    `beyond` are measures that the paper's table lacks; they do not compete for the best.
    """

    title: str
    labels: tuple[str, ...]
    beyond: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def table(self, label: str, of_paper: Sequence[PaperCell], index: CellIndex) -> Table:
        """Our cells at the keys of the paper's; the rows of tasks that were not run are left out.

        Where none of its tasks was run, every row is there, and its cells say so.
        """
        paper = PaperTable(of_paper, index)
        columns = [*paper.columns, *self.beyond]
        rows: list[Row] = []
        for task, test_set in paper.test_sets:
            own = self._rows(paper, task, test_set)
            several = len(own) > 1 or (bool(rows) and rows[-1].labels[0] != own[0].labels[0])
            rows += [replace(own[0], rule=bool(rows) and several), *own[1:]]
        beam = "B" if len({key.B for key in paper.keys}) > 1 or "B" in self.labels else "1"
        return Table(
            label,
            self.title,
            measure_header([_HEADINGS[name] for name in self.labels], columns, beam),
            tuple(rows),
            (BEST_NOTE.format(group="test set"), *self.notes),
        )

    def _rows(self, paper: PaperTable, task: str, test_set: str) -> list[Row]:
        """The rows of one test set, the best cells marked over all of them."""
        metrics = {key.column: key.metric for key in paper.keys}
        metrics |= dict.fromkeys(self.beyond, next(iter(metrics.values())))
        by_labels: dict[tuple[str, ...], list[TableCell | None]] = {}
        for key in paper.keys_of(task, test_set):
            labels = self._labels(paper.cell(key))
            # Settings of the paper fall together where the run has fewer.
            if labels not in by_labels:
                by_labels[labels] = [
                    None
                    if by_labels and column in _ONE_A_TEST_SET
                    else paper.cell(key._replace(column=column, metric=metric))
                    for column, metric in metrics.items()
                ]
        width = len(paper.columns)
        best = mark_best([cell for row in by_labels.values() for cell in row[:width]])
        return [
            Row(labels, (*best[place * width : (place + 1) * width], *row[width:]))
            for place, (labels, row) in enumerate(by_labels.items())
        ]

    def _labels(self, cell: TableCell) -> tuple[str, ...]:
        values = (str(getattr(cell.cell, name)) for name in self.labels)
        return tuple(_TEXTS.get(value, value) for value in values)

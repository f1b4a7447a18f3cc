"""The shape of a table of predictive performance: a row a model, a column a metric and test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.metrics.cell import COPY_THROUGH, Key
from pipeline.report.cells import CellIndex
from pipeline.report.names import METRICS, TASKS, measure_header, spans, task_name
from pipeline.report.paper import PaperCell, PaperTable
from pipeline.report.table import Heading, Row, Table, TableCell, mark_best

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


# Ours, beside the paper's metric.
_BESIDE = {"bleu": "chrf", "wer_percent": "cer_percent"}


@dataclass(frozen=True)
class PerformanceLayout:
    """A table whose rows are `models`: (ensemble, hypotheses) -> what it is called.

    `with_own_metrics` puts chrF and CER, where the run has them, and the metrics of the user
    (metrics.extra_metrics) behind the paper's columns.
    """

    title: str
    models: dict[tuple[str, str], str]
    with_own_metrics: bool = False

    def table(self, label: str, of_paper: Sequence[PaperCell], index: CellIndex) -> Table:
        """Our cells of every model in every column of the paper's.

        The columns of tasks that were not run are left out; where none of its tasks was run, every
        column is there, and its cells say so.
        """
        paper = PaperTable(of_paper, index)
        first = next(iter(self.models))
        columns = [key for key in paper.keys if (key.ensemble, key.hypotheses) == first]
        if self.with_own_metrics:
            columns += [*_beside(columns, index), *_own_metrics(index)]
        grid = [
            mark_best(
                [
                    paper.cell(key._replace(ensemble=ensemble, hypotheses=hypotheses))
                    for ensemble, hypotheses in self.models
                ]
            )
            for key in columns
        ]
        rows = [
            Row((name,), tuple(column[place] for column in grid))
            for place, name in enumerate(self.models.values())
        ]
        sets = {key.test_set for key in columns if key.task != "asr"}
        metrics = [_metric(key, with_set=len(sets) > 1) for key in columns]
        return Table(
            label,
            self.title,
            (
                (Heading("Model"), *spans(metrics)),
                (Heading(""), *(Heading(_column(key)) for key in columns)),
            ),
            tuple(rows),
            (BEST_NOTE.format(group="column"),),
        )


def _beside(columns: Sequence[Key], index: CellIndex) -> list[Key]:
    """The columns of chrF and CER, for the test sets that have the paper's metric."""
    keys = [
        key._replace(column=_BESIDE[key.metric], metric=_BESIDE[key.metric])
        for key in columns
        if key.metric in _BESIDE
    ]
    return [
        key for key in keys if index.keys(task=key.task, test_set=key.test_set, metric=key.metric)
    ]


def _own_metrics(index: CellIndex) -> list[Key]:
    """The columns of the user's own metrics, as keys of their single models."""
    keys = [
        cell.key
        for cell in index.cells
        if cell.column == cell.metric and cell.metric not in METRICS
    ]
    return list(dict.fromkeys(key._replace(ensemble="single", hypotheses="-") for key in keys))


def _metric(key: Key, *, with_set: bool) -> str:
    name = METRICS.get(key.metric, key.metric)
    return f"{key.test_set} {name}" if with_set and key.task != "asr" else name


def _column(key: Key) -> str:
    return f"ASR {key.test_set}" if key.task == "asr" else task_name(key.task)

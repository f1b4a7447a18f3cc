"""The shape of a table of predictive performance: a row a model, a column a metric and test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.metrics.cell import Key
from pipeline.report.cells import CellIndex
from pipeline.report.measure_headings import spans
from pipeline.report.measure_layout import BEST_NOTE
from pipeline.report.measure_names import METRICS
from pipeline.report.paper import PaperCell
from pipeline.report.paper_table import PaperTable
from pipeline.report.table import Heading, Row, Table, mark_best
from pipeline.report.task_names import task_name

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

"""What was run, task by task: its sets, the corpora behind them, who decoded them, how well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from pipeline.metrics.cell import Cell
from pipeline.quality.registry import QUALITIES
from pipeline.report.cells import CellIndex
from pipeline.report.names import METRICS, decoder_name, task_name
from pipeline.report.page.browse import BrowsableSet, ordered_test_sets
from pipeline.report.table import Table

_SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class SetSummary:
    """A test set; `quality` is the cell of the ensemble's corpus metric, None where it has none."""

    name: str
    corpus: str
    n_sentence: int | None
    decoded_by: list[str]
    quality: Cell | None

    @property
    def synthetic(self) -> bool:
        """Whether the corpus says that it is made and not found."""
        return _SYNTHETIC in self.corpus.lower()


@dataclass(frozen=True)
class TaskSummary:
    """A task with its members (of the sets that can be browsed) and its sets.

    `absent`: test set -> why the run has none.
    """

    name: str
    quality: str
    members: list[str]
    sets: list[SetSummary]
    absent: dict[str, str]


def summaries(frame: pd.DataFrame, sets: Sequence[BrowsableSet]) -> list[TaskSummary]:
    """One summary a task; `frame`: the cells of all tasks (pipeline.report.cells)."""
    index = CellIndex(frame)
    # A cell without a regime is no number: it says that there is no such set.
    absent = frame[frame["regime"] == "-"]
    return [
        _task(
            task,
            [cell for cell in index.cells if cell.task == task],
            {one.test_set: one for one in sets if one.task == task},
            dict(absent.loc[absent["task"] == task, ["test_set", "reason"]].to_numpy().tolist()),
        )
        for task in index.tasks
    ]


def signature_parts(tables: Iterable[Table]) -> dict[str, list[str]]:
    """Decodes, and metrics with their settings, behind the cells of the tables, each once."""
    signatures = dict.fromkeys(one.cell.signature for table in tables for one in table.cells)
    parts = dict.fromkeys(
        part.removeprefix("against ")
        for signature in signatures
        for part in signature.split("; ")
        if part
    )
    return {
        "Decodes": [one for one in parts if one.startswith("task:")],
        "Metrics and settings": [one for one in parts if not one.startswith("task:")],
    }


def _task(
    name: str, cells: list[Cell], sets: dict[str, BrowsableSet], absent: dict[str, str]
) -> TaskSummary:
    members = dict.fromkeys(member for one in sets.values() for member in one.members)
    metric = next((cell.metric for cell in cells if cell.metric in QUALITIES), "")
    return TaskSummary(
        task_name(name),
        METRICS.get(metric, metric),
        list(members),
        [
            _set(one, [cell for cell in cells if cell.test_set == one], sets.get(one))
            for one in ordered_test_sets(cells, name)
        ],
        absent,
    )


def _set(name: str, cells: list[Cell], browsable: BrowsableSet | None) -> SetSummary:
    decoders = dict.fromkeys(
        decoder_name(cell.ensemble, cell.hypotheses, cell.regime) for cell in cells
    )
    return SetSummary(
        name=name,
        corpus=next((cell.data for cell in cells if cell.data), ""),
        n_sentence=browsable.n_sentence if browsable else None,
        decoded_by=list(decoders),
        quality=_quality_cell(cells, browsable),
    )


def _quality_cell(cells: list[Cell], browsable: BrowsableSet | None) -> Cell | None:
    """The corpus metric of the decode that can be browsed."""
    for cell in cells:
        decoded = (cell.ensemble, cell.hypotheses, cell.regime)
        if (
            browsable is not None
            and cell.metric in QUALITIES
            and decoded == (browsable.ensemble, browsable.combination, browsable.regime)
        ):
            return cell
    return None

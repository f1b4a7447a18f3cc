"""The paper's tables of data sets, filled with the statistics of the prepare stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.report.cells import CellIndex
from pipeline.report.paper_numbers import TABLE_NUMBERS
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.run.artifacts import Artifact

_SYNTHETIC = "SYNTHETIC"
# One entry of a manifest's `subsets`: name of a column -> text.
Subset = Mapping[str, str]


@dataclass(frozen=True)
class _Layout:
    """The layout of a table; `labels` and `numbers` map columns of a manifest to headings."""

    title: str
    labels: Mapping[str, str]
    numbers: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.labels, *self.numbers)


_LAYOUTS = {
    "apn-tab:nmt": _Layout(
        "Translation data of this run",
        {"dataset": "Dataset", "subset": "Subset", "language": "LNG", "domain": "Domain"},
        {"sentences": "Sentences", "words_a_sentence": "Words / Sent."},
    ),
    "apn-tab:asr": _Layout(
        "Speech data of this run",
        {"dataset": "Dataset", "subset": "Subset", "domain": "Domain"},
        {
            "hours": "Hours",
            "utterances": "Utterances",
            "words_an_utterance": "Words / Utterance",
            "distinct_texts": "Distinct texts",
            "groups": "Groups",
        },
    ),
}


def read_descriptions(prepared: Path, tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Task -> what stage prepare says about its data; empty, with a warning, without a manifest."""
    return {
        task: Artifact(prepared / task, "prepare", required=False).description for task in tasks
    }


def dataset_tables(descriptions: Mapping[str, Mapping[str, Any]], index: CellIndex) -> list[Table]:
    """Lay out the `subsets` in the descriptions of prepared data (task -> description).

    `index` has the names of the tasks. Raises DataError for a subset that fits neither table.
    Source: `apn-tab:nmt`, `apn-tab:asr`.
    """
    rows: dict[str, list[Row]] = {label: [] for label in _LAYOUTS}
    for task, description in descriptions.items():
        for number, subset in enumerate(description.get("subsets", ())):
            label = _table_label(task, subset)
            labels = (index.label(task), *_labels(subset, _LAYOUTS[label]))
            rows[label].append(_row(task, subset, labels, _LAYOUTS[label], rule=number == 0))
    return [_table(label, rows_of_table) for label, rows_of_table in rows.items() if rows_of_table]


def _labels(subset: Subset, layout: _Layout) -> list[str]:
    """The labels of a subset, which say once that it is synthetic."""
    labels = [subset[name] for name in layout.labels]
    if any(f"({_SYNTHETIC})" in label for label in labels):
        return [label.removeprefix(f"{_SYNTHETIC}: ") for label in labels]
    return labels


def _table_label(task: str, subset: Subset) -> str:
    """The label of the table to which a subset belongs."""
    for label, layout in _LAYOUTS.items():
        if set(layout.columns) <= set(subset):
            return label
    wanted = " or ".join(", ".join(layout.columns) for layout in _LAYOUTS.values())
    raise DataError(
        f"manifest of {task}: a subset must have the entries {wanted} (got {', '.join(subset)}). "
        "Run python -m stages.prepare again."
    )


def _table(label: str, rows: list[Row]) -> Table:
    layout = _LAYOUTS[label]
    header = ("Task", *layout.labels.values(), *layout.numbers.values())
    headings = (tuple(Heading(name) for name in header),)
    return Table(label, layout.title, headings, tuple(rows), number=TABLE_NUMBERS[label])


def _row(task: str, subset: Subset, labels: tuple[str, ...], layout: _Layout, *, rule: bool) -> Row:
    cells = tuple(TableCell(_size_cell(task, subset, name)) for name in layout.numbers)
    return Row(labels, cells, rule=rule)


def _size_cell(task: str, subset: Subset, name: str) -> Cell:
    """One size of a subset as a cell; its column names the size and, if any, the language."""
    language = subset.get("language", "")
    column = f"{name}_{language}" if language else name
    key = (task, subset["subset"], "-", "-", "-")
    try:
        value = float(subset[name])
    except ValueError:
        return Cell(*key, column=column, metric=name, reason=subset[name])
    return Cell(*key, column=column, metric=name, value=value)

"""The paper's tables of data sets, filled with what the prepare stage found in ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.report.names import task_name
from pipeline.report.table import Heading, Row, Table, TableCell

# A row of a manifest's `subsets`: name of a column -> text.
Subset = Mapping[str, str]


@dataclass(frozen=True)
class _Layout:
    """`labels` and `numbers`: name of a column in a manifest -> its heading."""

    title: str
    labels: Mapping[str, str]
    numbers: Mapping[str, str]

    def fits(self, subset: Subset) -> bool:
        """Whether a row has the columns."""
        return {*self.labels, *self.numbers} <= set(subset)


_LAYOUTS = {
    "apn-tab:nmt": _Layout(
        "The translation data of this run",
        {"dataset": "Dataset", "subset": "Subset", "language": "LNG", "domain": "Domain"},
        {"sentences": "Sentences", "words_a_sentence": "Words / Sent."},
    ),
    "apn-tab:asr": _Layout(
        "The speech data of this run",
        {"dataset": "Dataset", "subset": "Subset", "domain": "Domain"},
        {
            "hours": "Hours",
            "utterances": "Utterances",
            "words_an_utterance": "Words / Utterance",
        },
    ),
}


def dataset_tables(manifests: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """The tables that the manifests of prepare (task -> manifest) have rows of.

    Words are counted at white space. Raises DataError for a row that fits neither table. Source:
    `apn-tab:nmt`, `apn-tab:asr`.
    """
    rows: dict[str, list[Row]] = {label: [] for label in _LAYOUTS}
    for task, manifest in manifests.items():
        for place, subset in enumerate(manifest.get("subsets", ())):
            label = _label_of(task, subset)
            rows[label].append(_row(task, subset, _LAYOUTS[label], rule=place == 0))
    return [_table(label, own) for label, own in rows.items() if own]


def _label_of(task: str, subset: Subset) -> str:
    """The label of the table that a row belongs to."""
    for label, layout in _LAYOUTS.items():
        if layout.fits(subset):
            return label
    wanted = " or ".join(", ".join((*one.labels, *one.numbers)) for one in _LAYOUTS.values())
    raise DataError(
        f"every row of subsets in the manifest of {task} must have {wanted}, "
        f"got {', '.join(subset)}: run python -m stages.prepare again"
    )


def _table(label: str, rows: list[Row]) -> Table:
    layout = _LAYOUTS[label]
    header = ("Task", *layout.labels.values(), *layout.numbers.values())
    return Table(label, layout.title, (tuple(Heading(name) for name in header),), tuple(rows))


def _row(task: str, subset: Subset, layout: _Layout, *, rule: bool) -> Row:
    labels = (task_name(task), *(subset[name] for name in layout.labels))
    cells = tuple(TableCell(_cell(task, subset, name)) for name in layout.numbers)
    return Row(labels, cells, rule=rule)


def _cell(task: str, subset: Subset, name: str) -> Cell:
    """A size as a cell: its column is the size, with the language where there are several."""
    language = subset.get("language", "")
    column = f"{name}_{language}" if language else name
    key = (task, subset["subset"], "-", "-", "-")
    try:
        value = float(subset[name])
    except ValueError:
        return Cell(*key, column=column, metric=name, reason=subset[name])
    return Cell(*key, column=column, metric=name, value=value)

"""The paper's tables of data sets, filled with what the prepare stage found in ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.metrics.cell import Cell
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.report.task_names import task_name

# A row of a manifest's `subsets`: name of a column -> text.
Subset = Mapping[str, str]


@dataclass(frozen=True)
class _Layout:
    """`labels` and `numbers`: name of a column in a manifest -> its heading."""

    title: str
    labels: Mapping[str, str]
    numbers: Mapping[str, str]

    def fits(self, subsets: Sequence[Subset]) -> bool:
        """Whether the rows have the columns."""
        return bool(subsets) and set(self.numbers) <= set(subsets[0])


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

    Words are counted at white space. Source: `apn-tab:nmt`, `apn-tab:asr`.
    """
    tables = []
    for label, layout in _LAYOUTS.items():
        rows = [
            row
            for task, manifest in manifests.items()
            if layout.fits(manifest.get("subsets", ()))
            for row in _rows(task, manifest["subsets"], layout)
        ]
        header = ("Task", *layout.labels.values(), *layout.numbers.values())
        if rows:
            headings = (tuple(Heading(name) for name in header),)
            tables.append(Table(label, layout.title, headings, tuple(rows)))
    return tables


def _rows(task: str, subsets: Sequence[Subset], layout: _Layout) -> Iterator[Row]:
    for place, subset in enumerate(subsets):
        labels = (task_name(task), *(subset[name] for name in layout.labels))
        cells = tuple(TableCell(_cell(task, subset, name)) for name in layout.numbers)
        yield Row(labels, cells, rule=place == 0)


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

"""The numbers that the paper prints, and our cells at the same keys."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.metrics.cell import KEY_COLUMNS, Cell, Key
from pipeline.report.cells import CellIndex
from pipeline.report.table import TableCell

_FILE = Path(__file__).with_name("paper_results.csv")
_Setting = tuple[str, str]  # (T, B)
# Label of a table of the paper -> its number there.
TABLE_NUMBERS = {
    "tab:nmt-bleu-asr-wer": 1,
    "tab:sequence-error-detection": 2,
    "tab:token-error-detection": 3,
    "tab:ood-detection": 4,
    "tab:ood-detection-adhoc": 5,
    "apn-tab:asr": 6,
    "apn-tab:nmt": 7,
    "tab-apn:nmt-bleu-nll": 8,
    "tab-apn:asr-wer-nll": 9,
    "apn-tab:sequence-error-detection-expr": 10,
    "tab-apn:token-error-detection-prex": 11,
    "tab-apn:token-error-detection-expr": 12,
    "tab-app:ood-detection-prex": 13,
    "tab-apn:ood-detection-expr": 14,
    "apn-tab:ood-detection-tf": 15,
    "apn-tab:sequence-error-detection-noln": 16,
    "apn-tab:ood-detection-noln": 17,
    "apn-tab:ood-detection-adhoc": 18,
    "tab-apn:nmt-bleu-nll-cpt": 19,
    "tab-apn:asr-wer-nll-cpt": 20,
    "tab-app:ood-detection-prex-cpt": 21,
}
# The paper's tasks -> their families.
FAMILIES = {"nmt_ende": "translation", "nmt_enfr": "translation", "asr": "speech"}


@dataclass(frozen=True)
class PaperSystem:
    """What the paper trained for a task: its models, and the size of its training data."""

    members: int
    architecture: str
    corpus: str
    training_sentences: int


# Source: section 4 and appendix B.
SYSTEMS = {
    "nmt_ende": PaperSystem(10, "transformer-big", "WMT'17", 4_500_000),
    "nmt_enfr": PaperSystem(10, "transformer-big", "WMT'14", 40_800_000),
    "asr": PaperSystem(6, "VGG-transformer", "LibriSpeech", 281_200),
}


@dataclass(frozen=True)
class PaperCell:
    """A number of the paper, with its spread if the paper prints one."""

    key: Key
    value: float
    spread: float | None


def paper_cells(label: str) -> list[PaperCell]:
    """The cells of one of the paper's tables, in its order; empty for an unknown label."""
    return _tables().get(label, [])


def paper_columns(label: str) -> list[str]:
    """The measures of one of the paper's tables, in its order."""
    return list(dict.fromkeys(cell.key.column for cell in paper_cells(label)))


def is_beyond_paper(cell: Cell) -> bool:
    """Whether no table of the paper has the test set of a cell, by its name or a role."""
    return not _roles(cell.task).intersection((cell.test_set, *cell.roles.split()))


@cache
def _roles(task: str) -> set[str]:
    """The test sets of a task in all tables of the paper; empty for a task of one's own."""
    keys = (cell.key for cells in _tables().values() for cell in cells)
    return {key.test_set for key in keys if key.task == task}


@cache
def _tables() -> dict[str, list[PaperCell]]:
    tables: dict[str, list[PaperCell]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = Key(*(row[name] for name in KEY_COLUMNS))
            # The paper itself prints NA for some spreads.
            spread = None if row["spread"] in ("", "NA") else float(row["spread"])
            tables.setdefault(row["table"], []).append(PaperCell(key, float(row["value"]), spread))
    return tables


class PaperTable:
    """The keys of one table, restricted to the tasks that were run.

    If none of its tasks was run, all of them are kept. `keys` are the keys of the paper's cells,
    `test_sets` the pairs (task, test set), `columns` the measures.
    """

    def __init__(self, cells: Sequence[PaperCell], index: CellIndex) -> None:
        self._index = index
        self._by_key = {cell.key: cell for cell in cells}
        run = [key for key in self._by_key if key.task in index.tasks]
        self.keys = run or list(self._by_key)
        self.columns = list(dict.fromkeys(key.column for key in self._by_key))
        self.test_sets = list(dict.fromkeys((key.task, key.test_set) for key in self.keys))
        # A table that compares kinds of ensembles must not show one kind in the row of another.
        kinds = {key.ensemble for key in self.keys if key.hypotheses != "-"}
        self._may_substitute_ensemble = len(kinds) == 1

    def keys_of(self, task: str, test_set: str) -> list[Key]:
        """The keys of one test set, in the paper's order."""
        return [key for key in self.keys if (key.task, key.test_set) == (task, test_set)]

    def cell(self, key: Key) -> TableCell:
        """Our cell at a key of this table, with the paper's number if the paper has one.

        If the run lacks the paper's T, B or ensemble, its own are used instead.
        """
        own_key = self._key_of_run(key)
        ours, paper = self._index.cell(own_key), self._by_key.get(own_key)
        if paper is None:
            return TableCell(ours, role=key.test_set)
        return TableCell(ours, paper.value, paper.spread, role=key.test_set)

    def _key_of_run(self, key: Key) -> Key:
        if key.hypotheses != "-" and self._may_substitute_ensemble:
            key = key._replace(ensemble=self._index.ensemble(key.task, key.ensemble))
        same = {name: getattr(key, name) for name in ("task", "ensemble", "hypotheses", "regime")}
        candidates = self._index.keys(**same, metric=key.metric)
        settings = [(candidate.T, candidate.B) for candidate in candidates]
        temperature, beam = _nearest((key.T, key.B), settings)
        return key._replace(T=temperature, B=beam)


def _nearest(wanted: _Setting, available: Sequence[_Setting]) -> _Setting:
    """The wanted (T, B) if it is available, or if no setting is available.

    Otherwise the wanted B or else the largest one, with the wanted T or else the first one.
    """
    if not available or wanted in available:
        return wanted
    temperature, beam = wanted
    beams = {own_beam for _, own_beam in available}
    if beam not in beams:
        beam = max(beams, key=lambda own_beam: int(own_beam or 0))
    temperatures = [own for own, own_beam in available if own_beam == beam]
    return temperature if temperature in temperatures else temperatures[0], beam

"""The paper's own numbers, from the file of its result tables."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.metrics.cell import KEY_COLUMNS, Key
from pipeline.report.cells import CellIndex
from pipeline.report.table import TableCell

_FILE = Path(__file__).with_name("paper_results.csv")


@dataclass(frozen=True)
class PaperCell:
    """A number that the paper prints, with its spread where it prints one.

    A table beyond the paper has cells of this kind without a value.
    """

    key: Key
    value: float | None
    spread: float | None


def paper_cells(label: str) -> list[PaperCell]:
    """The cells of one of the paper's tables in its order; empty for a label it does not have."""
    return _tables().get(label, [])


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


Setting = tuple[str, str]


class PaperTable:
    """One table over the tasks that were run, or over all of its tasks where none of them was.

    `keys` are those of the paper's cells, `test_sets` its (task, test set), `columns` its measures.
    """

    def __init__(self, cells: Sequence[PaperCell], index: CellIndex) -> None:
        self._index = index
        self._by_key = {cell.key: cell for cell in cells}
        run = [key for key in self._by_key if key.task in index.tasks]
        self.keys = run or list(self._by_key)
        self.columns = list(dict.fromkeys(key.column for key in self._by_key))
        self.test_sets = list(dict.fromkeys((key.task, key.test_set) for key in self.keys))
        # A table that compares kinds of ensembles shows no other kind in the place of one.
        kinds = {key.ensemble for key in self.keys if key.hypotheses != "-"}
        self._other_may_stand_in = len(kinds) == 1

    def keys_of(self, task: str, test_set: str) -> list[Key]:
        """The paper's keys of a test set, in its order."""
        return [key for key in self.keys if (key.task, key.test_set) == (task, test_set)]

    def cell(self, key: Key) -> TableCell:
        """Our cell of a key of this table, with the paper's number where it has one.

        Where a run lacks the paper's T, B or ensemble, its own stand in.
        """
        ours = self._index.cell(self._ours(key))
        theirs = self._by_key.get(ours.key)
        return TableCell(ours, theirs.value, theirs.spread) if theirs else TableCell(ours)

    def _ours(self, key: Key) -> Key:
        if key.hypotheses != "-" and self._other_may_stand_in:
            key = key._replace(ensemble=self._index.ensemble(key.task, key.ensemble))
        same = {name: getattr(key, name) for name in ("task", "ensemble", "hypotheses", "regime")}
        own = self._index.keys(**same, metric=key.metric)
        temperature, beam = _nearest((key.T, key.B), [(one.T, one.B) for one in own])
        return key._replace(T=temperature, B=beam)


def _nearest(wanted: Setting, own: Sequence[Setting]) -> Setting:
    """The wanted (T, B) if the run has it or has none at all, else the like of it: a B of 1, or the
    largest one; the same T, or the first one."""
    if not own or wanted in own:
        return wanted
    temperature, beam = wanted
    beams = {one for _, one in own}
    if beam not in beams:
        beam = max(beams, key=lambda one: int(one or 0))
    temperatures = [one for one, of in own if of == beam]
    return temperature if temperature in temperatures else temperatures[0], beam

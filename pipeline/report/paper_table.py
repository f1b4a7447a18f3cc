"""Our cells beside the paper's numbers, in the order of one of its tables."""

from __future__ import annotations

from pipeline.metrics.cell import Key
from pipeline.report.cells import CellIndex
from pipeline.report.paper import paper_cells
from pipeline.report.table import TableCell


class PaperTable:
    """One table of the paper over the tasks that were run: its keys, and cells to show there."""

    def __init__(self, label: str, index: CellIndex) -> None:
        self._index = index
        self._by_key = {cell.key: cell for cell in paper_cells(label)}
        self.keys = [key for key in self._by_key if key.task in index.tasks]
        self.columns = list(dict.fromkeys(key.column for key in self._by_key))
        self.test_sets = list(dict.fromkeys((key.task, key.test_set) for key in self.keys))

    def settings(self, task: str, test_set: str) -> list[tuple[str, str]]:
        """(T, B) of the rows of a test set: the paper's, or the run's own where it lacks one."""
        keys = self.keys_of(task, test_set)
        of_paper = dict.fromkeys((key.T, key.B) for key in keys)
        same = self._ours(keys[0])._asdict()
        wanted = {name: one for name, one in same.items() if name not in ("T", "B", "column")}
        own = dict.fromkeys((key.T, key.B) for key in self._index.keys(**wanted))
        return list(of_paper if not own or of_paper.keys() <= own.keys() else own)

    def keys_of(self, task: str, test_set: str) -> list[Key]:
        """The paper's keys of a test set, in its order."""
        return [key for key in self.keys if (key.task, key.test_set) == (task, test_set)]

    def cell(self, key: Key) -> TableCell:
        """Our cell of a key of this table, with the paper's number where it has one."""
        ours = self._index.cell(self._ours(key))
        theirs = self._by_key.get(ours.key)
        return TableCell(ours, theirs.value, theirs.spread) if theirs else TableCell(ours)

    def _ours(self, key: Key) -> Key:
        """The key with the run's own ensemble where it lacks the paper's."""
        if key.ensemble == "single":
            return key
        return key._replace(ensemble=self._index.ensemble(key.task, key.ensemble))

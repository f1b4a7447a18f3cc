"""Cells of a measure that does not depend on a setting: computed once and repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pipeline.metrics.cell import Cell
from pipeline.metrics.evaluation import Evaluation
from pipeline.quality.weighted_metric import FloatArray


@dataclass(frozen=True)
class RepeatedCells:
    """The cells of some decodes, found again by measure and values.

    At B = 1 no measure depends on T, and variances do not depend on the length normalisation. The
    bootstrap of these cells would take most of the time of the stage.
    """

    evaluation: Evaluation
    _known: dict[tuple[str, str, bytes], Cell] = field(default_factory=dict)

    def filled(
        self, cell: Cell, values: Iterable[FloatArray], compute: Callable[[Cell], Cell]
    ) -> Cell:
        """The cell with its numbers, by `compute` unless a cell with these values has them.

        values: all arrays that the numbers depend on, besides the decodes.
        """
        content = hashlib.sha256()
        for array in values:
            content.update(array.tobytes())
        found = cell.metric, cell.column, content.digest()
        if found in self._known:
            return self.evaluation.repeated(cell, self._known[found])
        self._known[found] = compute(cell)
        return self._known[found]

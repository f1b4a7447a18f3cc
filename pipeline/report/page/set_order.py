"""The test sets of a task in the order that people read them."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.metrics.cell import Cell


def ordered_test_sets(cells: Iterable[Cell], task: str) -> list[str]:
    """The baseline first, then sets with decodes of single members, then those only scored.

    The baseline is told by having no ROC-AUC: the others are told apart from it.
    """
    by_set: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.task == task:
            by_set.setdefault(cell.test_set, []).append(cell)

    def rank(name: str) -> tuple[bool, bool, bool]:
        own = by_set[name]
        return (
            all(cell.regime == "teacher_forcing" for cell in own),
            any(cell.metric == "roc_auc" for cell in own),
            all(cell.ensemble != "single" for cell in own),
        )

    return sorted(by_set, key=rank)

"""Decodes that share a key: single members, or ensembles of one kind from several trainings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell, Key
from pipeline.metrics.decodes import Decode
from pipeline.parts import digest

_Item = TypeVar("_Item")
_ONE_MEMBER = "one member: no spread"


def groups(decodes: Sequence[Decode]) -> list[list[Decode]]:
    """The decodes by key, in their order."""
    return groups_by(decodes, lambda decode: decode)


def groups_by(items: Iterable[_Item], decode_of: Callable[[_Item], Decode]) -> list[list[_Item]]:
    """Things made of decodes, grouped by the key of their decode, in their order."""
    by_key: dict[Key, list[_Item]] = {}
    for one in items:
        by_key.setdefault(decode_of(one).cell.key, []).append(one)
    return list(by_key.values())


def shared_cell(group: Sequence[Decode]) -> Cell:
    """What the cells of a group share; the signatures of several decodes come as one digest.

    Raises DataError where the decodes do not list the same sentences.
    """
    sizes = {len(decode.texts) for decode in group}
    if len(sizes) > 1:
        raise DataError(
            f"the decodes of {group[0].cell.test_set} must list the same sentences, "
            f"got {sorted(sizes)}"
        )
    cell = group[0].cell
    if len(group) == 1 and cell.ensemble != "single":
        return cell
    signatures = digest(*(decode.cell.signature for decode in group))[:12]
    of = "members" if cell.ensemble == "single" else "ensembles"
    signature = (
        f"task:{cell.task}|set:{cell.test_set}|ensemble:{cell.ensemble}|{of}:{len(group)}"
        f"|regime:{cell.regime}|decodes:{signatures}"
    )
    return replace(cell, signature=signature)


def scorable_in_all(group: Sequence[Decode]) -> NDArray[np.bool_]:
    """Which sentences every decode of a group has a hypothesis and a reference of: [sentence]."""
    return np.asarray(np.stack([decode.scorable for decode in group]).all(axis=0))


def texts(decode: Decode, used: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
    """Hypotheses and references of the sentences in use."""
    places = np.flatnonzero(used)
    return [str(decode.texts[i]) for i in places], [str(decode.references[i]) for i in places]


def with_spread(cell: Cell, values: Sequence[float]) -> Cell:
    """A cell with the standard deviation over the values that it is the mean of.

    One ensemble alone has none; a single member alone says so.
    """
    if len(values) > 1:
        return replace(cell, spread=float(np.std(values, ddof=1)))
    if cell.ensemble == "single":
        return replace(cell, reason=cell.reason or _ONE_MEMBER)
    return cell

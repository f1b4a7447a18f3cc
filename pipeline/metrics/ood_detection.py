"""Cells of out-of-domain detection: ROC-AUC of each test set against the in-domain one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import Cell, number_text
from pipeline.metrics.decodes import Measured, Measures, first_of_each_length_norm
from pipeline.metrics.detection import roc_auc_statistic
from pipeline.metrics.error_detection import CONSTANT
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import shared_cell
from pipeline.metrics.statistic import FloatArray

# The in-domain measures of an ensemble and those of the set to be told apart.
Pair = tuple[Measures, Measures]


def ood_detection_cells(
    in_domain: Sequence[Measured], others: Sequence[Measured], evaluation: Evaluation
) -> Iterator[Cell]:
    """ROC-AUC in percent of every measure at every setting of the set to be told apart.

    `others` holds the decodes of one key, of which the mean is taken, `in_domain` the in-domain
    decode of each one's own ensemble, in the same order. References have no beam: by teacher
    forcing B = 1 and T has no effect. Source: `tab:ood-detection`, `apn-tab:ood-detection-tf`.
    """
    cell = shared_cell([one.decode for one in others])
    against = shared_cell([one.decode for one in in_domain])
    cell = replace(
        cell, metric="roc_auc", signature=f"{cell.signature}; against {against.signature}"
    )
    forced = cell.regime == "teacher_forcing"
    for outside in _points(others[0], forced):
        shared = replace(
            cell,
            T="" if forced else number_text(outside.temperature),
            B=str(outside.beam),
            length_norm=str(outside.length_norm).lower(),
        )
        pairs = [
            pair
            for inside, other in zip(in_domain, others, strict=True)
            if (pair := _pair(inside, other, outside, forced)) is not None
        ]
        for name in outside.values:
            named = replace(shared, column=name)
            if len(pairs) < len(others) or not all(_have(name, pair) for pair in pairs):
                yield replace(named, reason="the in-domain set lacks this measure")
            else:
                yield _cell(named, pairs, evaluation)


def _points(measured: Measured, forced: bool) -> list[Measures]:
    """The settings that make a difference."""
    if forced:
        return list(first_of_each_length_norm(measured.grid).values())
    return measured.grid


def _pair(inside: Measured, other: Measured, point: Measures, forced: bool) -> Pair | None:
    """The measures of two decodes at one setting; None where one lacks it."""
    first, second = (
        next((at for at in _points(one, forced) if at.setting == point.setting), None)
        for one in (inside, other)
    )
    return None if first is None or second is None else (first, second)


def _have(name: str, pair: Pair) -> bool:
    return all(name in one.values for one in pair)


def _cell(cell: Cell, pairs: Sequence[Pair], evaluation: Evaluation) -> Cell:
    name = cell.column
    used_inside = _present([inside.values[name] for inside, _ in pairs])
    used_outside = _present([outside.values[name] for _, outside in pairs])
    in_domain, other = pairs[0]
    if not used_inside.any() and not used_outside.any():
        return replace(cell, reason=other.reason(name))
    if not used_outside.any():
        return replace(cell, reason=f"one class only, in-domain: {other.reason(name)}")
    if not used_inside.any():
        return replace(cell, reason=f"one class only, out-of-domain: {in_domain.reason(name)}")
    scores = [
        (inside.values[name][used_inside], outside.values[name][used_outside])
        for inside, outside in pairs
    ]
    filled = evaluation.mean_filled(
        cell,
        [roc_auc_statistic(inside, outside) for inside, outside in scores],
        np.concatenate([evaluation.weights(used_inside), evaluation.weights(used_outside)], axis=1),
        f"{evaluation.measures_signature}; ROC-AUC|ties:half",
    )
    if all((np.concatenate(both) == both[0][0]).all() for both in scores):
        return replace(filled, reason=CONSTANT)
    if 1 in (used_inside.sum(), used_outside.sum()):
        return replace(filled, low=None, high=None, reason="a single sentence has no interval")
    return filled


def _present(values: Sequence[FloatArray]) -> NDArray[np.bool_]:
    """Which sentences have a value in every decode of the group: [sentence]."""
    return np.asarray(~np.isnan(np.stack(values)).any(axis=0))

"""Cells of out-of-domain detection: ROC-AUC of each test set against the in-domain one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeline.metrics.cell import Cell, number_text
from pipeline.metrics.decodes import Measured, Measures
from pipeline.metrics.detection import roc_auc_statistic
from pipeline.metrics.error_detection import CONSTANT
from pipeline.metrics.evaluation import Evaluation


def ood_detection_cells(
    in_domain: Measured, other: Measured, evaluation: Evaluation
) -> Iterator[Cell]:
    """ROC-AUC in percent of every measure at every setting of the set to be told apart, `other`.

    Source: `tab:ood-detection`.
    """
    inside_by_setting = {one.setting: one for one in in_domain.grid}
    signature = f"{other.decode.cell.signature}; against {in_domain.decode.cell.signature}"
    for measures in other.grid:
        inside = inside_by_setting.get(measures.setting)
        shared = replace(
            other.decode.cell,
            signature=signature,
            T=number_text(measures.temperature),
            B=str(measures.beam),
            length_norm=str(measures.length_norm).lower(),
            metric="roc_auc",
        )
        for name in measures.values:
            cell = replace(shared, column=name)
            if inside is None or name not in inside.values:
                yield replace(cell, reason="the in-domain set lacks this measure")
            else:
                yield _cell(cell, inside, measures, evaluation)


def _cell(cell: Cell, in_domain: Measures, other: Measures, evaluation: Evaluation) -> Cell:
    inside, outside = in_domain.values[cell.column], other.values[cell.column]
    used_inside, used_outside = ~np.isnan(inside), ~np.isnan(outside)
    if not used_inside.any() and not used_outside.any():
        return replace(cell, reason=other.reason(cell.column))
    if not used_outside.any():
        return replace(cell, reason=f"one class only, in-domain: {other.reason(cell.column)}")
    if not used_inside.any():
        reason = in_domain.reason(cell.column)
        return replace(cell, reason=f"one class only, out-of-domain: {reason}")
    inside, outside = inside[used_inside], outside[used_outside]
    weights = np.concatenate(
        [evaluation.weights(used_inside), evaluation.weights(used_outside)], axis=1
    )
    filled = evaluation.filled(
        cell,
        roc_auc_statistic(inside, outside),
        weights,
        f"{evaluation.measures_signature}; ROC-AUC|ties:half",
    )
    if (inside == inside[0]).all() and (outside == inside[0]).all():
        return replace(filled, reason=CONSTANT)
    if 1 in (len(inside), len(outside)):
        return replace(filled, low=None, high=None, reason="a single sentence has no interval")
    return filled

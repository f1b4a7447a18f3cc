"""Cells of sentence-level error detection: prediction rejection ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, Measured, first_of_each_length_norm
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import scorable_in_all, shared_cell, texts
from pipeline.metrics.rules import RejectionRule, rejection_rules
from pipeline.metrics.statistic import FloatArray

CONSTANT = "the measure is the same for every sentence"


def error_detection_cells(group: Sequence[Measured], evaluation: Evaluation) -> Iterator[Cell]:
    """Prediction rejection ratio in percent of every measure at B = 1, where T has no effect.

    `group` holds the decodes of one key, of which the mean is taken. Error of a sentence:
    100 - sentence BLEU, or its WER; a cell for each of the rules of the evaluation.
    Source: `tab:sequence-error-detection`.
    """
    decodes = [one.decode for one in group]
    scorable = scorable_in_all(decodes)
    grids = [first_of_each_length_norm(one.grid) for one in group]
    for rule in rejection_rules(evaluation.quality, evaluation.rules):
        errors_percent = [_errors_percent(decode, scorable, rule) for decode in decodes]
        for length_norm, first in grids[0].items():
            measures = [grid[length_norm] for grid in grids if length_norm in grid]
            setting = str(length_norm).lower()
            shared = replace(shared_cell(decodes), B="1", length_norm=setting, metric=rule.metric)
            for name in first.values:
                cell = replace(shared, column=name)
                if not scorable.any():
                    yield replace(cell, reason=decodes[0].why_not_scorable)
                elif len(measures) < len(group) or any(name not in one.values for one in measures):
                    yield replace(cell, reason="not every ensemble of this kind has the measure")
                else:
                    values = [one.values[name] for one in measures]
                    cell = _cell(cell, errors_percent, values, rule, evaluation)
                    yield cell if cell.n else replace(cell, reason=first.reason(name))


def _errors_percent(decode: Decode, scorable: NDArray[np.bool_], rule: RejectionRule) -> FloatArray:
    """The error of each sentence, NaN where it cannot be scored."""
    error_percent = np.full(len(scorable), np.nan)
    error_percent[scorable] = rule.sentence_error_percent(*texts(decode, scorable))
    return error_percent


def _cell(
    cell: Cell,
    errors_percent: Sequence[FloatArray],
    values: Sequence[FloatArray],
    rule: RejectionRule,
    evaluation: Evaluation,
) -> Cell:
    """The cell of one measure; n = 0 where no sentence has both an error and a value."""
    used = np.asarray(~np.isnan(np.stack([*errors_percent, *values])).any(axis=0))
    if not used.any():
        return cell
    errors = [one[used] for one in errors_percent]
    if len(errors[0]) == 1:
        return replace(cell, n=1, reason="a single sentence has no order")
    if any((one == one[0]).all() for one in errors):
        return replace(cell, n=len(errors[0]), reason="all errors are equal")
    kept = [one[used] for one in values]
    filled = evaluation.mean_filled(
        cell,
        [rule.statistic(error, value) for error, value in zip(errors, kept, strict=True)],
        evaluation.weights(used),
        f"{evaluation.measures_signature}; {rule.signature}",
    )
    same_for_all = all((one == one[0]).all() for one in kept)
    return replace(filled, reason=CONSTANT) if same_for_all else filled

"""Cells of sentence-level error detection: prediction rejection ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Measured, Measures
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.rejection import rejection_statistic
from pipeline.metrics.statistic import FloatArray

CONSTANT = "the measure is the same for every sentence"


def error_detection_cells(measured: Measured, evaluation: Evaluation) -> Iterator[Cell]:
    """Prediction rejection ratio in percent of every measure at B = 1, where T has no effect.

    Error of a sentence: 100 - sentence BLEU, or its WER. Source: `tab:sequence-error-detection`.
    """
    decode = measured.decode
    scorable = decode.scorable
    error_percent = np.full(len(scorable), np.nan)
    places = np.flatnonzero(scorable)
    error_percent[places] = evaluation.quality.sentence_error_percent(
        [str(decode.texts[i]) for i in places], [str(decode.references[i]) for i in places]
    )
    for measures in _one_a_length_norm(measured.grid):
        length_norm = str(measures.length_norm).lower()
        shared = replace(decode.cell, B="1", length_norm=length_norm, metric="prr")
        for name, uncertainty in measures.values.items():
            cell = replace(shared, column=name)
            if not places.size:
                yield replace(cell, reason=decode.why_not_scorable)
            else:
                cell = _cell(cell, error_percent, uncertainty, evaluation)
                yield cell if cell.n else replace(cell, reason=measures.reason(name))


def _cell(
    cell: Cell, error_percent: FloatArray, uncertainty: FloatArray, evaluation: Evaluation
) -> Cell:
    """The cell of one measure; n = 0 where no sentence has both an error and a value."""
    used: NDArray[np.bool_] = ~np.isnan(error_percent) & ~np.isnan(uncertainty)
    if not used.any():
        return cell
    errors = error_percent[used]
    if len(errors) == 1:
        return replace(cell, n=1, reason="a single sentence has no order")
    if (errors == errors[0]).all():
        return replace(cell, n=len(errors), reason="all errors are equal")
    kept = uncertainty[used]
    filled = evaluation.filled(
        cell,
        rejection_statistic(errors, kept),
        evaluation.weights(used),
        f"{evaluation.measures_signature}; PRR|error:sentence-{evaluation.quality.name}|ties:mean",
    )
    return replace(filled, reason=CONSTANT) if (kept == kept[0]).all() else filled


def _one_a_length_norm(grid: Sequence[Measures]) -> list[Measures]:
    first: dict[bool, Measures] = {}
    for measures in grid:
        if measures.beam == 1:
            first.setdefault(measures.length_norm, measures)
    return list(first.values())

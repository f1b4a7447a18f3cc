"""Cells of measures that do not depend on a setting are computed once, with their draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.metrics.cell import Cell
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation
from pipeline.metrics.measure_files import MeasuredDecode
from pipeline.metrics.repeated_cells import RepeatedCells
from pipeline.metrics.sentence_detection import ood_detection_cells
from pipeline.quality.registry import QUALITIES

SETTINGS = [(beam, temperature) for beam in (1, 5) for temperature in (10.0, 1.0)]


def at_settings(measured: MeasuredDecode, of_b5: list[float]) -> MeasuredDecode:
    """The measure `u` differs at B = 5 and T = 1 only, `v` nowhere."""
    (first,) = measured.grid
    grid = []
    for beam, temperature in SETTINGS:
        differs = (beam, temperature) == (5, 1.0)
        values = {
            "u": np.array(of_b5) if differs else first.values["u"],
            "v": first.values["u"],
        }
        at = replace(first, beam=beam, beam_used=beam, temperature=temperature, values=values)
        grid.append(at)
    return replace(measured, grid=grid)


def test_cells_and_draws_equal_those_without_repetition(
    measured: Callable[..., MeasuredDecode], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = at_settings(measured([1, 5, 3]), [1, 2, 3])
    outside = at_settings(measured([2, 6, 3]), [5, 1, 4])

    def cells() -> tuple[list[Cell], RecordedEvaluation, int]:
        evaluation = RecordedEvaluation(QUALITIES["bleu"], 30, 0, "measures")
        computed = []
        filled = RecordedEvaluation.mean_filled

        def counted(*args: object) -> Cell:
            computed.append(args)
            return filled(*args)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(RecordedEvaluation, "mean_filled", counted)
            return (
                list(ood_detection_cells([inside], [outside], evaluation)),
                evaluation,
                len(computed),
            )

    repeated, recorded, n_computed = cells()
    monkeypatch.setattr(RepeatedCells, "filled", lambda _, cell, values, compute: compute(cell))
    expected, all_recorded, n_all = cells()
    assert (n_computed, n_all) == (3, 8)
    assert repeated == expected
    assert list(recorded.draws) == list(all_recorded.draws)
    for key, draws in all_recorded.draws.items():
        np.testing.assert_array_equal(recorded.draws[key], draws)
    assert recorded.replicates == all_recorded.replicates


def test_a_cell_is_computed_again_for_another_measure_metric_or_value(
    evaluation: Evaluation,
) -> None:
    known = RepeatedCells(evaluation)
    numbers = iter(range(9))

    def value(cell: Cell, values: list[float]) -> float | None:
        arrays = [np.array(values)]
        return known.filled(cell, arrays, lambda c: replace(c, value=float(next(numbers)))).value

    cell = Cell("task", "set", "random_init", "prex", "beam", column="u", metric="prr")
    assert value(cell, [1.0]) == 0
    assert value(replace(cell, T="1"), [1.0]) == 0
    assert value(cell, [2.0]) == 1
    assert value(replace(cell, column="v"), [1.0]) == 2
    assert value(replace(cell, metric="roc_auc"), [1.0]) == 3

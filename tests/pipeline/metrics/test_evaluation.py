"""A statistic becomes a cell: its numbers, its reason and its signature."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.metrics.bootstrap import resample_weights
from pipeline.metrics.cell import Cell
from pipeline.metrics.evaluation import Evaluation
from pipeline.quality.weighted_metric import weighted_mean

CELL = Cell("nmt_ende", "MED", "random_init", "prex", "beam", metric="nll", signature="decode")
EVERY = np.ones(4, dtype=bool)
VALUE = np.array([1.0, 2.0, 4.0, 9.0])


def test_a_filled_cell(evaluation: Evaluation) -> None:
    cell = evaluation.filled(CELL, weighted_mean(VALUE), evaluation.weights(EVERY), "NLL")
    draws = resample_weights(4, 30, 0) @ VALUE / 4
    assert (cell.value, cell.n, cell.reason, cell.spread) == (4, 4, "", None)
    assert (cell.low, cell.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    assert cell.signature == "decode; NLL; bootstrap|n:30|seed:0|interval:percentile-95"


def test_a_cell_without_a_value_says_no_reason_of_its_own(evaluation: Evaluation) -> None:
    weights = evaluation.weights(EVERY)
    undefined = [weighted_mean(VALUE), weighted_mean(VALUE * np.nan)]
    cell = evaluation.mean_filled(CELL, undefined, weights, "NLL")
    assert (cell.value, cell.low, cell.n, cell.spread, cell.reason) == (None, None, 4, None, "")


def test_the_mean_of_a_group_has_an_interval_of_its_own(evaluation: Evaluation) -> None:
    weights = evaluation.weights(EVERY)
    group = [weighted_mean(VALUE), weighted_mean(VALUE[::-1] + 2)]
    cell = evaluation.mean_filled(CELL, group, weights, "NLL")
    assert cell.value == 5
    assert cell.spread == pytest.approx(np.sqrt(2))
    draws = weights @ (VALUE + VALUE[::-1] + 2) / 8
    assert (cell.low, cell.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


def test_resamples_are_of_all_sentences_of_the_set(evaluation: Evaluation) -> None:
    whole = resample_weights(4, 30, 0)
    np.testing.assert_array_equal(evaluation.weights(EVERY), whole)
    used = np.array([True, False, True, True])
    np.testing.assert_array_equal(evaluation.weights(used), whole[:, [0, 2, 3]])


@pytest.mark.parametrize(
    ("of_decode", "of_metric", "both"),
    [("a", "b", "a; b"), ("", "b", "b"), ("a", "", "a"), ("", "", "")],
)
def test_signatures_are_joined(
    evaluation: Evaluation, of_decode: str, of_metric: str, both: str
) -> None:
    cell = Cell("nmt_ende", "MED", "random_init", "prex", "beam", signature=of_decode)
    assert evaluation.signed(cell, of_metric) == both

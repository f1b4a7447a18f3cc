"""A cell that cannot be computed has a reason and does not affect other cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.metrics.copy_through import copy_through_cells
from pipeline.metrics.performance import quality_cells
from pipeline.metrics.sentence_detection import error_detection_cells, ood_detection_cells

EMPTY = "the test set has no sentence"


def test_an_empty_test_set_has_reasons(measured, evaluation):
    nothing = measured([], [], [], sources=[])
    cells = [
        *quality_cells([nothing.decode], evaluation),
        *error_detection_cells([nothing], evaluation),
    ]
    assert [(cell.value, cell.reason) for cell in cells] == [(None, EMPTY)] * 3
    (copied,) = copy_through_cells([nothing.decode], evaluation)
    assert (copied.value, copied.reason[:11]) == (None, "no sentence")
    (ood,) = ood_detection_cells([measured([1, 2, 3])], [nothing], evaluation)
    assert (ood.value, ood.reason.partition(":")[0]) == (None, "one class only, in-domain")


@pytest.mark.parametrize(
    ("inside", "outside", "reason"),
    [
        ([1, 2, 3], [np.nan] * 3, "one class only, in-domain: no member decoded it"),
        ([np.nan] * 3, [1, 2, 3], "one class only, out-of-domain: no member decoded it"),
        ([np.nan] * 3, [np.nan] * 3, "no member decoded it"),
    ],
)
def test_one_class_only_has_a_reason(measured, evaluation, inside, outside, reason):
    why = "no member decoded it"
    pair = (measured(values, why_null=why) for values in (inside, outside))
    (cell,) = ood_detection_cells(*([measures] for measures in pair), evaluation)
    assert (cell.value, cell.low, cell.reason) == (None, None, reason)


def test_a_constant_measure_does_not_affect_another_measure(measured, evaluation):
    first, second = measured([1, 1, 1]), measured([1, 1, 1])
    for decode, varied in ((first, [1.0, 2, 3]), (second, [4.0, 5, 6])):
        values = decode.grid[0].values | {"v": np.array(varied)}
        decode.grid[0] = replace(decode.grid[0], values=values)
    constant, varying = ood_detection_cells([first], [second], evaluation)
    assert (constant.value, constant.reason) == (50, "the measure is the same for every sentence")
    assert (varying.value, varying.reason) == (100, "undefined in 1 of 30 resamples")


@pytest.mark.parametrize(("text", "values"), [("a", [1]), ("b", [1])])
def test_a_single_sentence_has_no_interval_and_no_order(measured, evaluation, text, values):
    decode = measured(values, [text], ["a"])
    quality, secondary = quality_cells([decode.decode], evaluation)
    for cell in (quality, secondary):
        assert cell.value is not None
        assert (cell.low, cell.reason) == (None, "a single group of sentences has no interval")
    (prr,) = error_detection_cells([decode], evaluation)
    assert (prr.value, prr.reason) == (None, "a single sentence has no order")


def test_equal_errors_only_affect_rejection(measured, evaluation):
    decode = measured([1, 2, 3], ["x y"] * 3, ["a b"] * 3)
    (prr,) = error_detection_cells([decode], evaluation)
    assert (prr.value, prr.reason) == (None, "all errors are equal")
    quality, _ = quality_cells([decode.decode], evaluation)
    assert (quality.value, quality.low, quality.high) == (0, 0, 0)

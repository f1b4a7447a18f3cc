import numpy as np
import pytest

from pipeline.metrics.ood_detection import ood_detection_cells

NONE = [np.nan] * 3


def test_counts_the_sentences_of_both_sets(measured, evaluation):
    (cell,) = ood_detection_cells(measured([1, 2, np.nan]), measured([3, 4, np.inf]), evaluation)
    assert (cell.value, cell.n, cell.T, cell.B) == (100, 5, "10", "1")


@pytest.mark.parametrize(
    ("inside", "outside", "reason"),
    [
        (NONE, [1, 2, 3], "one class only, out-of-domain: no members"),
        ([1, 2, 3], NONE, "one class only, in-domain: no members"),
        (NONE, NONE, "no members"),
    ],
)
def test_says_why_there_is_no_value(measured, evaluation, inside, outside, reason):
    (cell,) = ood_detection_cells(
        measured(inside, why_null="no members"),
        measured(outside, why_null="no members"),
        evaluation,
    )
    assert (cell.value, cell.reason) == (None, reason)


def test_a_constant_measure_is_chance_and_says_so(measured, evaluation):
    (cell,) = ood_detection_cells(measured([0, 0, 0]), measured([0, 0, 0]), evaluation)
    assert (cell.value, cell.reason) == (50, "the measure is the same for every sentence")

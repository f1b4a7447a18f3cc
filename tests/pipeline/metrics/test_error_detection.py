import numpy as np
import pytest

from pipeline.metrics.sentence_detection import error_detection_cells


def test_the_value_is_a_number_of_the_scored_sentences(measured, evaluation):
    (cell,) = error_detection_cells(
        [measured([1, 2, 3, np.nan], ["a", "b", "c d", "e"], ["a", "b", "x", "e"])], evaluation
    )
    assert (cell.value, cell.n, cell.T, cell.B) == (100, 3, "", "1")
    assert cell.signature.startswith("sig; measures; PRR|error:sentence-bleu|ties:mean; bootstrap")


@pytest.mark.parametrize(
    ("values", "texts", "references", "n", "reason"),
    [
        ([1, 2], ["a", "b"], [None, None], 0, "no reference"),
        ([1, 2], [None, None], ["a", "b"], 0, "no hypothesis"),
        ([1, 2], [None, "b"], ["a", None], 0, "no sentence has both a hypothesis and a reference"),
        ([1, np.nan], [None, "b"], ["a", "b"], 0, "no scored sentence has a value of this measure"),
        ([1, 2], ["a", None], ["a", "b"], 1, "a single sentence has no order"),
        ([1, 2], ["a", "b"], ["a", "b"], 2, "all errors are equal"),
    ],
)
def test_says_why_there_is_no_value(measured, evaluation, values, texts, references, n, reason):
    (cell,) = error_detection_cells([measured(values, texts, references)], evaluation)
    assert (cell.value, cell.n, cell.reason) == (None, n, reason)


def test_a_constant_measure_is_chance_and_says_so(measured, evaluation):
    (cell,) = error_detection_cells([measured([0, 0, 0])], evaluation)
    assert (cell.value, cell.reason) == (0, "the measure is the same for every sentence")

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve

from pipeline.metrics.rejection import prediction_rejection_ratio
from pipeline.metrics.rules import (
    Rules,
    floor_sentence_bleu,
    precision_rules,
    rejection_rules,
    weighted_shifted_rejection_ratio,
    weighted_trapezoid_area,
)
from pipeline.metrics.sentence_detection import error_detection_cells
from pipeline.quality.registry import QUALITIES
from pipeline.quality.weighted_metric import point_estimate

ALL = Rules("floor-1.1", "shifted", "trapezoid")


@pytest.mark.parametrize(
    ("hypothesis", "reference", "percent"),
    [
        ("wrong", "right", 110),
        ("quite wrong", "so right", 77.78),
        ("a b c d", "a b c d", 100),
        ("a", "a", 100),
        ("", "something", 0),
        ("x", "a b c", 110 * np.exp(-2)),
    ],
)
def test_floor_smoothing_as_released(hypothesis: str, reference: str, percent: float) -> None:
    assert floor_sentence_bleu([hypothesis], [reference])[0] == pytest.approx(percent, abs=0.01)


def by_its_curves(error: list[float], order: list[int]) -> float:
    """Area under the mean error after replacing 0 .. N - 1 sentences, points 1/N apart."""
    rest = [sum(error[i] for i in order[done:]) for done in range(len(order))]
    return float(np.trapezoid(rest))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=9))
def test_shifted_ratio_is_that_of_curves_without_their_end(rows: list[tuple[int, int]]) -> None:
    error = [float(one) for one, _ in rows]
    uncertainty = [float(one) for _, one in rows]
    count = len(rows)
    random = float(np.trapezoid([sum(error) * (1 - i / count) for i in range(count)]))
    by_uncertainty = by_its_curves(error, sorted(range(count), key=lambda i: (-uncertainty[i], -i)))
    by_error = by_its_curves(error, sorted(range(count), key=lambda i: -error[i]))
    found = point_estimate(weighted_shifted_rejection_ratio(error, uncertainty), count)
    assume(abs(random - by_error) > 1e-9)
    assert found == pytest.approx(100 * (random - by_uncertainty) / (random - by_error), abs=1e-6)


def test_shifted_ratio_of_a_resample_is_that_of_its_sentences() -> None:
    error, uncertainty = [1.0, 5.0, 2.0, 7.0], [0.3, 0.9, 0.5, 0.4]
    weights = np.array([[2.0, 0.0, 1.0, 1.0]])
    drawn = [0, 0, 2, 3]
    of_resample = weighted_shifted_rejection_ratio(error, uncertainty)(weights)[0]
    itself = weighted_shifted_rejection_ratio(
        [error[i] for i in drawn], [uncertainty[i] for i in drawn]
    )
    assert of_resample == pytest.approx(point_estimate(itself, 4))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=12).filter(
        lambda rows: any(label for label, _ in rows)
    )
)
def test_trapezoid_is_the_area_of_scikit_learns_curve(rows: list[tuple[bool, int]]) -> None:
    label = [int(one) for one, _ in rows]
    score = [float(one) for _, one in rows]
    precision, recall, _ = precision_recall_curve(label, score)
    found = point_estimate(weighted_trapezoid_area(label, score), len(rows))
    assert found == pytest.approx(100 * auc(recall, precision))


def test_trapezoid_flatters_a_constant_score() -> None:
    label = np.repeat([1, 0], [36, 964])
    assert point_estimate(weighted_trapezoid_area(label, np.zeros(1000)), 1000) == pytest.approx(
        51.8
    )


def test_each_released_rule_stands_beside_the_right_one() -> None:
    bleu, wer = QUALITIES["bleu"], QUALITIES["wer_percent"]
    names = [rule.metric for rule in rejection_rules(bleu, ALL)]
    assert names == ["prr", "prr_sbleu_floor", "prr_shifted", "prr_released"]
    assert [rule.metric for rule in rejection_rules(wer, ALL)] == ["prr", "prr_shifted"]
    only = replace(ALL, prr="exact")
    assert [rule.metric for rule in rejection_rules(bleu, only)] == ["prr", "prr_sbleu_floor"]
    assert [rule.metric for rule in precision_rules(ALL)] == ["aupr", "aupr_trapezoid"]


def test_cells_of_released_rules_have_metrics_of_their_own(measured, evaluation) -> None:
    texts, references = ["wrong", "a b c d", "quite wrong"], ["right", "a b c d", "so right"]
    cells = {
        cell.metric: cell
        for cell in error_detection_cells(
            [measured([3, 1, 2], texts, references)], replace(evaluation, rules=ALL)
        )
    }
    assert cells["prr"].value == pytest.approx(prediction_rejection_ratio([100, 0, 100], [3, 1, 2]))
    assert cells["prr_sbleu_floor"].value == pytest.approx(
        prediction_rejection_ratio([-10, 0, 22.22], [3, 1, 2]), abs=0.1
    )
    assert "error:sentence-bleu-floor-1.1|ties:mean" in cells["prr_sbleu_floor"].signature
    assert "ties:file|end:without" in cells["prr_shifted"].signature

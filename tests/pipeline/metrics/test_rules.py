"""Rules of error detection: names, signatures and numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve

from pipeline.metrics.rejection import prediction_rejection_ratio
from pipeline.metrics.rules import (
    CORRECT_RULES,
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

RELEASED = Rules("floor-1.1", "shifted", "trapezoid")
TEXTS, REFERENCES = ["wrong", "a b c d", "quite wrong"], ["right", "a b c d", "so right"]


def test_default_has_the_correct_rules_only() -> None:
    for name, details in (("bleu", "tok:13a|norm:NFC"), ("wer_percent", "case:mixed|norm:NFC")):
        (rule,) = rejection_rules(QUALITIES[name], CORRECT_RULES)
        error = f"error:sentence-{name}|{details}"
        assert (rule.metric, rule.signature) == ("prr", f"PRR|{error}|ties:mean")
    (precision,) = precision_rules(CORRECT_RULES)
    assert (precision.metric, precision.signature) == ("aupr", "AP|ties:together")


def test_released_rules_are_added_singly_and_together() -> None:
    signatures = {
        rule.metric: rule.signature for rule in rejection_rules(QUALITIES["bleu"], RELEASED)
    }
    assert signatures == {
        "prr": "PRR|error:sentence-bleu|tok:13a|norm:NFC|ties:mean",
        "prr_sbleu_floor": "PRR|error:sentence-bleu-floor-1.1|tok:13a|norm:NFC|ties:mean",
        "prr_shifted": "PRR|error:sentence-bleu|tok:13a|norm:NFC|ties:file|end:without",
        "prr_released": "PRR|error:sentence-bleu-floor-1.1|tok:13a|norm:NFC|ties:file|end:without",
    }
    only_floor = Rules("floor-1.1", "exact", "average_precision")
    assert [rule.metric for rule in rejection_rules(QUALITIES["wer_percent"], only_floor)] == [
        "prr"
    ]


def test_errors_and_scores_of_rejection_rules() -> None:
    errors = {
        rule.metric: rule.sentence_error_percent(TEXTS, REFERENCES).tolist()
        for rule in rejection_rules(QUALITIES["bleu"], RELEASED)
    }
    correct, floor = [100, 0, 100], [-10, 0, 100 - 110 / 2**0.5]
    assert errors["prr"] == errors["prr_shifted"] == pytest.approx(correct)
    assert errors["prr_sbleu_floor"] == errors["prr_released"] == pytest.approx(floor)
    # Remaining errors: 6, 4, 4, 0; random 6, 4, 2, 0; oracle 6, 2, 0, 0. Shifted omits the last.
    exact, shifted = (
        point_estimate(rule.score([4, 0, 2], [1, 2, 3]), 3)
        for rule in rejection_rules(
            QUALITIES["wer_percent"], Rules("effective", "shifted", "trapezoid")
        )
    )
    assert exact == pytest.approx(-50)
    assert shifted == pytest.approx(-100 / 3)


def test_scores_of_precision_rules() -> None:
    """One error is ranked second of two: precision is 1/2, or a straight line from 0 to 1/2."""
    average, trapezoid = (
        point_estimate(rule.score([0, 1], [2, 1], None), 2) for rule in precision_rules(RELEASED)
    )
    assert (average, trapezoid) == (50, 25)


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
def test_floor_smoothing_is_that_of_the_released_code(
    hypothesis: str, reference: str, percent: float
) -> None:
    assert floor_sentence_bleu([hypothesis], [reference])[0] == pytest.approx(percent, abs=0.01)


def by_its_curves(error: list[float], order: list[int]) -> float:
    """Return the area under the mean error after replacing 0 to N - 1 sentences."""
    rest = [sum(error[i] for i in order[done:]) for done in range(len(order))]
    return float(np.trapezoid(rest))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=9))
def test_shifted_ratio_equals_that_of_curves_without_their_end(rows: list[tuple[int, int]]) -> None:
    error = [float(value) for value, _ in rows]
    uncertainty = [float(value) for _, value in rows]
    count = len(rows)
    random = float(np.trapezoid([sum(error) * (1 - i / count) for i in range(count)]))
    by_uncertainty = by_its_curves(error, sorted(range(count), key=lambda i: (-uncertainty[i], -i)))
    by_error = by_its_curves(error, sorted(range(count), key=lambda i: -error[i]))
    result = point_estimate(weighted_shifted_rejection_ratio(error, uncertainty), count)
    assume(abs(random - by_error) > 1e-9)
    assert result == pytest.approx(100 * (random - by_uncertainty) / (random - by_error), abs=1e-6)


def test_shifted_ratio_of_a_resample_equals_that_of_its_sentences() -> None:
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
def test_trapezoid_area_equals_that_of_scikit_learns_curve(rows: list[tuple[bool, int]]) -> None:
    label = [int(value) for value, _ in rows]
    score = [float(value) for _, value in rows]
    precision, recall, _ = precision_recall_curve(label, score)
    result = point_estimate(weighted_trapezoid_area(label, score), len(rows))
    assert result == pytest.approx(100 * auc(recall, precision))


def test_trapezoid_area_of_a_constant_score_exceeds_the_base_rate() -> None:
    label = np.repeat([1, 0], [36, 964])
    assert point_estimate(weighted_trapezoid_area(label, np.zeros(1000)), 1000) == pytest.approx(
        51.8
    )


def test_released_rules_are_added_to_the_correct_rule() -> None:
    bleu, wer = QUALITIES["bleu"], QUALITIES["wer_percent"]
    names = [rule.metric for rule in rejection_rules(bleu, RELEASED)]
    assert names == ["prr", "prr_sbleu_floor", "prr_shifted", "prr_released"]
    assert [rule.metric for rule in rejection_rules(wer, RELEASED)] == ["prr", "prr_shifted"]
    only = replace(RELEASED, prr="exact")
    assert [rule.metric for rule in rejection_rules(bleu, only)] == ["prr", "prr_sbleu_floor"]
    assert [rule.metric for rule in precision_rules(RELEASED)] == ["aupr", "aupr_trapezoid"]


def test_cells_of_released_rules_have_their_own_metrics(measured, evaluation) -> None:
    texts, references = ["wrong", "a b c d", "quite wrong"], ["right", "a b c d", "so right"]
    cells = {
        cell.metric: cell
        for cell in error_detection_cells(
            [measured([3, 1, 2], texts, references)], replace(evaluation, rules=RELEASED)
        )
    }
    assert cells["prr"].value == pytest.approx(prediction_rejection_ratio([100, 0, 100], [3, 1, 2]))
    assert cells["prr_sbleu_floor"].value == pytest.approx(
        prediction_rejection_ratio([-10, 0, 22.22], [3, 1, 2]), abs=0.1
    )
    assert (
        "error:sentence-bleu-floor-1.1|tok:13a|norm:NFC|ties:mean"
        in cells["prr_sbleu_floor"].signature
    )
    assert "ties:file|end:without" in cells["prr_shifted"].signature

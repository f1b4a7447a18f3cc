"""The names and signatures of the rules, and what each computes."""

from __future__ import annotations

import pytest

from pipeline.metrics.rules import CORRECT_RULES, Rules, precision_rules, rejection_rules
from pipeline.quality.registry import QUALITIES
from pipeline.quality.weighted_metric import point_estimate

RELEASED = Rules("floor-1.1", "shifted", "trapezoid")
TEXTS, REFERENCES = ["wrong", "a b c d", "quite wrong"], ["right", "a b c d", "so right"]


def test_the_right_rules_alone() -> None:
    for name in ("bleu", "wer_percent"):
        (rule,) = rejection_rules(QUALITIES[name], CORRECT_RULES)
        assert (rule.metric, rule.signature) == ("prr", f"PRR|error:sentence-{name}|ties:mean")
    (precision,) = precision_rules(CORRECT_RULES)
    assert (precision.metric, precision.signature) == ("aupr", "AP|ties:together")


def test_the_released_rules_one_by_one_and_together() -> None:
    signatures = {
        rule.metric: rule.signature for rule in rejection_rules(QUALITIES["bleu"], RELEASED)
    }
    assert signatures == {
        "prr": "PRR|error:sentence-bleu|ties:mean",
        "prr_sbleu_floor": "PRR|error:sentence-bleu-floor-1.1|ties:mean",
        "prr_shifted": "PRR|error:sentence-bleu|ties:file|end:without",
        "prr_released": "PRR|error:sentence-bleu-floor-1.1|ties:file|end:without",
    }
    only_floor = Rules("floor-1.1", "exact", "average_precision")
    assert [one.metric for one in rejection_rules(QUALITIES["wer_percent"], only_floor)] == ["prr"]


def test_errors_and_curves_of_each_rule() -> None:
    errors = {
        rule.metric: rule.sentence_error_percent(TEXTS, REFERENCES).tolist()
        for rule in rejection_rules(QUALITIES["bleu"], RELEASED)
    }
    right, floor = [100, 0, 100], [-10, 0, 100 - 110 / 2**0.5]
    assert errors["prr"] == errors["prr_shifted"] == pytest.approx(right)
    assert errors["prr_sbleu_floor"] == errors["prr_released"] == pytest.approx(floor)
    # Errors left: 6, 4, 4, 0; at random 6, 4, 2, 0; of the oracle 6, 2, 0, 0. Shifted: no last one.
    exact, shifted = (
        point_estimate(rule.score([4, 0, 2], [1, 2, 3]), 3)
        for rule in rejection_rules(
            QUALITIES["wer_percent"], Rules("effective", "shifted", "trapezoid")
        )
    )
    assert exact == pytest.approx(-50)
    assert shifted == pytest.approx(-100 / 3)


def test_areas_of_each_rule() -> None:
    """One error in the second place of two: precision 1/2 there; from 0 to it a straight line."""
    average, trapezoid = (
        point_estimate(rule.score([0, 1], [2, 1], None), 2) for rule in precision_rules(RELEASED)
    )
    assert (average, trapezoid) == (50, 25)

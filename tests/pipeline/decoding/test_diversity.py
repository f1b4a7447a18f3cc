from __future__ import annotations

import math
from typing import Any

import pytest

from pipeline.decoding.diversity import diversity
from pipeline.decoding.test_set import Sentence
from pipeline.errors import PipelineError

SENTENCES = [Sentence(0, [3, 2], [3, 2]), Sentence(1, [4, 3, 2], [2])]
# EOS is 2; tokens 0 and 1 never occur.
SURE, UNSURE, OTHER = [0, 0, 0.25, 0.75], [0, 0, 0.5, 0.5], [0, 0, 0.75, 0.25]


def of(table_model: Any, *members: list[float]) -> dict[str, Any]:
    names = [f"m_{index}" for index in range(len(members))]
    model = table_model(lambda source, prefix: list(members))
    return diversity(model, {name: f"{name} (models/{name})" for name in names}, SENTENCES, 2)


def test_divergence_and_disagreement_are_means_over_tokens(table_model: Any) -> None:
    report = of(table_model, SURE, OTHER)
    expected = 0.5 * math.log(3)
    assert report["kl_nats"] == pytest.approx(expected, abs=1e-6)
    assert report["disagreement_percent"] == 100
    assert (report["sentences"], report["tokens"]) == (2, 3)
    assert report["pairs"] == [
        {
            "members": ["m_0", "m_1"],
            "disagreement_percent": 100.0,
            "kl_nats": pytest.approx(expected, abs=1e-6),
        }
    ]


def test_divergence_is_the_mean_of_both_directions(table_model: Any) -> None:
    there = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    back = 0.5 * math.log(1 / 1.5) + 0.5 * math.log(2)
    report = of(table_model, SURE, UNSURE)
    assert report["kl_nats"] == pytest.approx((there + back) / 2, abs=1e-6)


def test_the_mean_is_over_pairs(table_model: Any) -> None:
    report = of(table_model, SURE, UNSURE, OTHER)
    assert len(report["pairs"]) == 3
    mean = sum(pair["kl_nats"] for pair in report["pairs"]) / 3
    assert report["kl_nats"] == pytest.approx(mean)


def test_a_token_of_probability_0_gives_a_finite_divergence(table_model: Any) -> None:
    assert math.isfinite(of(table_model, SURE, [0, 0, 0, 1.0])["kl_nats"])


def test_members_that_are_the_same_model_are_named(table_model: Any) -> None:
    with pytest.raises(
        PipelineError, match=r"m_0 \(models/m_0\) and m_2 \(models/m_2\) are the same"
    ):
        of(table_model, SURE, OTHER, SURE)


def test_a_member_with_nan_is_named_before_anything_is_decoded(table_model: Any) -> None:
    model = table_model(lambda source, prefix: [SURE, [math.nan] * 4])
    with pytest.raises(PipelineError, match=r"NaN log-probs .* from member b \(models/b\)\. Check"):
        diversity(model, {"a": "a (models/a)", "b": "b (models/b)"}, SENTENCES, 2)


def test_sentences_that_cannot_be_scored_are_left_out(table_model: Any) -> None:
    model = table_model(lambda source, prefix: [SURE, OTHER])
    unfit = [Sentence(0, [], [3, 2]), Sentence(1, [3, 2], None), Sentence(2, [3] * 200, [2])]
    report = diversity(model, {"a": "a", "b": "b"}, unfit, 2)
    assert report == {
        "sentences": 0,
        "tokens": 0,
        "pairs": [],
        "disagreement_percent": None,
        "kl_nats": None,
    }

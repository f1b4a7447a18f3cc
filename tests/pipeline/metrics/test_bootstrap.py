import numpy as np
import pytest
from sacrebleu.metrics import BLEU

import pipeline.metrics.bootstrap as bootstrap
from pipeline.metrics import (
    average_precision,
    corpus_wer_percent,
    interval_estimate,
    prediction_rejection_ratio,
    resample_weights,
    roc_auc,
)
from pipeline.metrics.bootstrap import resampled_values
from pipeline.metrics.detection import weighted_average_precision, weighted_roc_auc
from pipeline.metrics.rejection import weighted_rejection_ratio
from pipeline.quality.speech import weighted_error_rate, word_error_counts
from pipeline.quality.translation import bleu_counts, weighted_corpus_bleu
from pipeline.quality.weighted_metric import weighted_mean

RESAMPLES = 20
TEXTS = ["a b c d e", "a b", "x", "", "a b c x e f", "c d", "a a a", "b c d e f"]
REFERENCES = ["a b c d e", "a c", "a", "b", "a b c d e f", "d c", "a a b", "c d e f g"]


def drawn(weights):
    """Return the sentences of each resample, with repetitions."""
    return [np.repeat(np.arange(weights.shape[1]), row) for row in weights]


def test_weights_are_draws_with_replacement():
    weights = resample_weights(50, 200, seed=3)
    assert weights.shape == (200, 50)
    assert (weights.sum(axis=1) == 50).all()
    assert weights.mean(axis=0).std() < 0.2
    assert not np.array_equal(weights, resample_weights(50, 200, seed=4))


def test_weights_and_values_do_not_depend_on_the_chunk_size(monkeypatch):
    values = np.arange(7.0)
    weights = resample_weights(7, 11, seed=0)
    draws = resampled_values(weighted_mean(values), weights)
    monkeypatch.setattr(bootstrap, "_CHUNK_VALUES", 20)
    resample_weights.cache_clear()
    np.testing.assert_array_equal(resample_weights(7, 11, seed=0), weights)
    np.testing.assert_array_equal(resampled_values(weighted_mean(values), weights), draws)


def test_every_weighted_metric_equals_a_loop_over_resamples():
    generator = np.random.default_rng(0)
    n = len(TEXTS)
    weights = resample_weights(n, RESAMPLES, seed=1)
    error = generator.integers(0, 5, n).astype(float)
    score = generator.integers(0, 4, n).astype(float)
    label = generator.integers(0, 2, n)

    def texts(rows):
        return [TEXTS[i] for i in rows], [REFERENCES[i] for i in rows]

    def bleu(rows):
        hypotheses, references = texts(rows)
        return BLEU().corpus_score(hypotheses, [references]).score

    cases = [
        (
            weighted_rejection_ratio(error, score),
            lambda i: prediction_rejection_ratio(error[i], score[i]),
        ),
        (
            weighted_average_precision(label, score),
            lambda i: average_precision(label[i], score[i]),
        ),
        (
            weighted_roc_auc(score[:3], score[3:]),
            lambda i: roc_auc(score[i[i < 3]], score[i[i >= 3]]),
        ),
        (weighted_corpus_bleu(bleu_counts(TEXTS, REFERENCES)), bleu),
        (
            weighted_error_rate(word_error_counts(TEXTS, REFERENCES)),
            lambda i: corpus_wer_percent(*texts(i)),
        ),
        (weighted_mean(error), lambda i: error[i].mean()),
    ]
    for metric, loop in cases:
        expected = [loop(rows) for rows in drawn(weights)]
        np.testing.assert_allclose(resampled_values(metric, weights), expected, atol=1e-9)


def test_interval_covers_the_mean_of_a_normal_sample():
    values = np.random.default_rng(5).normal(size=400)
    result = interval_estimate(weighted_mean(values), resample_weights(400, 1000, seed=0))
    assert result.value == pytest.approx(values.mean())
    half_width = 1.96 * values.std() / 20
    assert result.low == pytest.approx(values.mean() - half_width, abs=0.02)
    assert result.high == pytest.approx(values.mean() + half_width, abs=0.02)
    assert result.reason == ""


def test_a_missing_interval_has_a_reason():
    single = interval_estimate(weighted_mean(np.array([2.0])), resample_weights(1, 10, seed=0))
    assert (single.value, single.low) == (2.0, None)
    assert single.reason == "a single sentence has no interval"
    undefined = interval_estimate(
        weighted_rejection_ratio([1, 0], [1, 0]), resample_weights(2, 10, seed=0)
    )
    assert (undefined.value, undefined.high) == (100.0, None)
    assert "of 10 resamples" in undefined.reason
    without = interval_estimate(weighted_mean(np.array([1.0, 3.0])), resample_weights(2, 0, seed=0))
    assert (without.value, without.low, without.reason) == (2.0, None, "")


def test_an_undefined_point_estimate_has_no_value():
    assert (
        interval_estimate(weighted_rejection_ratio([1, 1], [1, 0]), resample_weights(2, 9, 0)).value
        is None
    )


def test_undefined_resamples_are_counted_in_the_reason():
    weights = np.array([[1, 1], [2, 0], [0, 2], [2, 0]], dtype=np.uint16)

    def of_the_second(weights):
        return np.where(weights[:, 1] > 0, 7.0, np.nan)

    result = interval_estimate(of_the_second, weights)
    assert (result.value, result.low, result.high) == (7, None, None)
    assert result.reason == "no interval: undefined in 2 of 4 resamples"


def test_an_interval_holds_95_of_100_resamples():
    weights = np.eye(101, dtype=np.uint16)
    result = interval_estimate(lambda weights: weights @ np.arange(101.0), weights)
    assert (result.value, result.low, result.high) == pytest.approx((5050, 2.5, 97.5))


def test_weights_are_shared_and_cannot_be_changed():
    weights = resample_weights(5, 3, seed=0)
    assert resample_weights(5, 3, seed=0) is weights
    with pytest.raises(ValueError, match="read-only"):
        weights[0, 0] = 1
    assert resampled_values(weighted_mean(np.arange(5.0)), weights[:0]).shape == (0,)

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from scipy import stats

import pipeline.metrics.bootstrap as bootstrap
from pipeline.metrics import (
    average_precision,
    corpus_wer_percent,
    estimate,
    prediction_rejection_ratio,
    resample,
    roc_auc,
)
from pipeline.metrics.bootstrap import percentile_interval, resampled_values
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


def sentences(n):
    return [f"newstest14:{number}" for number in range(n)]


def test_groups_are_drawn_independently_and_with_a_mean_of_1():
    weights = resample(sentences(50), 4000, seed=3).weights.astype(float)
    assert weights.shape == (4000, 50)
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.08)
    np.testing.assert_allclose(weights.var(axis=0), 1, atol=0.15)
    correlation = np.corrcoef(weights.T) - np.eye(50)
    assert np.abs(correlation).max() < 0.08
    assert not np.array_equal(weights, resample(sentences(50), 4000, seed=4).weights)


def test_sentences_of_a_group_are_drawn_together():
    resamples = resample(["a", "b", "a", "c", "b"], 200, seed=0)
    weights = resamples.weights
    assert (resamples.n_group, resamples.n_sentence, resamples.unit) == (3, 5, "group")
    np.testing.assert_array_equal(weights[:, [0, 1]], weights[:, [2, 4]])
    assert not np.array_equal(weights[:, 0], weights[:, 3])


def test_test_sets_with_common_groups_share_their_resamples():
    baseline = resample(["page 1", "page 2", "page 3"], 100, seed=0).weights
    without_the_second = resample(["page 3", "page 1"], 100, seed=0).weights
    np.testing.assert_array_equal(without_the_second, baseline[:, [2, 0]])


def test_joined_resamples_count_the_groups_of_the_smaller_set():
    inside = resample(["a", "b", "b"], 9, seed=0)
    outside = resample(sentences(4), 9, seed=0, unit="sentence, no groups")
    joined = inside.joined(outside)
    np.testing.assert_array_equal(joined.weights, np.hstack([inside.weights, outside.weights]))
    assert (joined.n_group, joined.unit) == (2, "group+sentence, no groups")
    assert inside.joined(inside).unit == "group"


def test_values_do_not_depend_on_the_chunk_size(monkeypatch):
    values = np.arange(7.0)
    weights = resample(sentences(7), 11, seed=0).weights
    draws = resampled_values(weighted_mean(values), weights)
    monkeypatch.setattr(bootstrap, "_CHUNK_VALUES", 20)
    np.testing.assert_array_equal(resampled_values(weighted_mean(values), weights), draws)


def test_a_resample_without_any_sentence_has_no_value():
    weights = np.array([[0, 0], [1, 2], [0, 0]], dtype=np.uint8)
    draws = resampled_values(lambda weights: 6 / weights.sum(axis=1), weights)
    np.testing.assert_array_equal(draws, [np.nan, 2, np.nan])


def test_every_weighted_metric_equals_a_loop_over_resamples():
    generator = np.random.default_rng(0)
    n = len(TEXTS)
    weights = resample(sentences(n), RESAMPLES, seed=1).weights
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


def test_interval_of_a_mean_agrees_with_students_interval():
    values = np.random.default_rng(5).normal(size=400)
    result = estimate(weighted_mean(values), resample(sentences(400), 4000, seed=0))
    assert result.value == pytest.approx(values.mean())
    low, high = stats.t.interval(0.95, 399, values.mean(), values.std(ddof=1) / 20)
    assert result.interval.low == pytest.approx(low, abs=0.01)
    assert result.interval.high == pytest.approx(high, abs=0.01)
    assert result.interval.reason == ""


def test_interval_takes_the_expanded_quantiles():
    draws = np.arange(10001.0)
    # Phi(-t sqrt(G / (G - 1))) by hand: t = 2.022691 at 39 degrees of freedom, times 1.012739.
    tail = stats.norm.cdf(-2.022691 * 1.012739)
    assert tail == pytest.approx(0.020261, abs=1e-5)
    interval = percentile_interval(draws, 40)
    assert (interval.low, interval.high) == pytest.approx(
        (10000 * tail, 10000 * (1 - tail)), abs=0.1
    )
    assert percentile_interval(draws, 10**7).low == pytest.approx(250, abs=0.1)


def test_a_missing_interval_has_a_reason():
    single = estimate(weighted_mean(np.array([2.0, 3.0])), resample(["a", "a"], 10, seed=0))
    assert (single.value, single.interval.low) == (2.5, None)
    assert single.interval.reason == "a single group of sentences has no interval"
    without = estimate(weighted_mean(np.array([1.0, 3.0])), resample(sentences(2), 0, seed=0))
    assert (without.value, without.interval.low, without.interval.reason) == (2.0, None, "")


def test_an_undefined_point_estimate_has_no_value():
    metric = weighted_rejection_ratio([1, 1], [1, 0])
    assert estimate(metric, resample(sentences(2), 9, seed=0)).value is None


@pytest.mark.parametrize(
    ("n_undefined", "low", "reason"),
    [
        (0, 1.0, ""),
        (1, 1.0, "undefined in 1 of 100 resamples"),
        (5, 1.0, "undefined in 5 of 100 resamples"),
        (6, None, "no interval: undefined in 6 of 100 resamples"),
        (100, None, "no interval: undefined in 100 of 100 resamples"),
    ],
)
def test_undefined_resamples_are_left_out_up_to_a_share_and_counted(n_undefined, low, reason):
    draws = np.ones(100)
    draws[:n_undefined] = np.nan
    draws[: n_undefined // 2] = np.inf
    interval = percentile_interval(draws, 30)
    assert (interval.low, interval.high, interval.reason) == (low, low, reason)


def test_weights_cannot_be_changed():
    weights = resample(sentences(5), 3, seed=0).weights
    with pytest.raises(ValueError, match="read-only"):
        weights[0, 0] = 1
    assert resampled_values(weighted_mean(np.arange(5.0)), weights[:0]).shape == (0,)

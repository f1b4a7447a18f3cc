"""The rules of the code that the paper's authors released, where they depart from the right ones.

Each stands for one line of the list of departures: sentence BLEU with 'floor' smoothing of 1.1, a
rejection curve without its end point and with ties in the order of the file, and the area under
straight lines between points of precision and recall.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.metrics.statistic import FloatArray, Statistic, ratio
from pipeline.metrics.ties import scores, tie_groups
from pipeline.metrics.translation import bleu_counts

_FLOOR = 1.1


def floor_sentence_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Sentence BLEU in percent, [sentence], an order without a match counting 1.1 matches.

    A wholly wrong answer of one word has 110, one of two words 77.8. Raises DataError where the
    numbers of texts differ.
    """
    counts = bleu_counts(hypotheses, references)
    has_order = counts.total > 0
    matched = np.where(counts.correct > 0, counts.correct, _FLOOR)
    log_precision = np.where(has_order, np.log(matched / np.maximum(counts.total, 1)), 0)
    mean = log_precision.sum(axis=1) / np.maximum(has_order.sum(axis=1), 1)
    said = counts.hypothesis_tokens
    log_brevity = np.minimum(0, 1 - counts.reference_tokens / np.maximum(said, 1))
    return np.where(said > 0, 100 * np.exp(mean + log_brevity), 0)


def shifted_rejection_statistic(error: ArrayLike, uncertainty: ArrayLike) -> Statistic:
    """The released prediction rejection ratio in percent, as a function of weights.

    Its curves end before the last sentence is replaced. So the last one stands in half a trapezoid
    less than in the exact ratio, and of equal uncertainties the later sentence goes first.
    """
    errors, uncertainties = scores("error", error), scores("uncertainty", uncertainty)
    by_uncertainty = _shifted_gain(errors, np.argsort(uncertainties, kind="stable")[::-1])
    by_error = _shifted_gain(errors, np.argsort(errors, kind="stable")[::-1])
    return lambda weights: 100 * ratio(by_uncertainty(weights), by_error(weights))


def trapezoid_statistic(
    label: ArrayLike, uncertainty: ArrayLike, sentence: NDArray[np.intp] | None = None
) -> Statistic:
    """Area in percent under straight lines between points of recall and precision.

    The first point has recall 0 and precision 1, so that a constant score reaches far more than the
    base rate. A function of weights [resample, sentence]; `sentence` [token]: the place of each
    token's sentence; if None, each token is one of its own.
    """
    labels = scores("label", label)
    groups = tie_groups(-scores("uncertainty", uncertainty))

    def area(weights: FloatArray) -> FloatArray:
        if not len(labels):
            return np.full(len(weights), np.nan)
        weights = weights if sentence is None else weights[:, sentence]
        positive = np.cumsum(groups.sums(weights * labels), axis=1)
        flagged = np.cumsum(groups.sums(weights), axis=1)
        precision = np.divide(positive, flagged, out=np.ones_like(positive), where=flagged > 0)
        before = np.concatenate([np.ones((len(weights), 1)), precision[:, :-1]], axis=1)
        gained = np.diff(positive, axis=1, prepend=0)
        lines = np.einsum("rg,rg->r", gained, (precision + before) / 2)
        return 100 * ratio(lines, positive[:, -1])

    return area


def _shifted_gain(errors: FloatArray, order: np.ndarray) -> Statistic:
    """Area between the random curve and that of an order of replacement, [resample].

    In units of error times squared number of sentences, as in pipeline.metrics.rejection.
    """
    ordered = errors[order]

    def gain(weights: FloatArray) -> FloatArray:
        count = weights[:, order]
        up_to = np.cumsum(count, axis=1)
        n_sentence = up_to[:, -1]
        total = count @ ordered
        # The copies of a sentence stand at the ranks up to up_to, each in rank - 1/2 trapezoids.
        left = np.einsum("rs,rs->r", count * ordered, up_to - count / 2)
        last = ordered[len(ordered) - 1 - np.argmax(count[:, ::-1] > 0, axis=1)]
        return np.asarray((n_sentence - 1 / n_sentence) / 2 * total - left + last / 2)

    return gain

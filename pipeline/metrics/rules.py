"""By which rules detection of errors is scored: the right ones, and released ones beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.metrics.detection import average_precision_statistic
from pipeline.metrics.ranking import scores, tie_groups
from pipeline.metrics.rejection import rejection_statistic
from pipeline.quality.kinds import Quality
from pipeline.quality.statistic import FloatArray, Statistic, ratio
from pipeline.quality.translation import bleu_counts

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


ErrorsPercent = Callable[[Sequence[str], Sequence[str]], FloatArray]
# (error, uncertainty) of sentences -> the score as a function of weights
Score = Callable[[ArrayLike, ArrayLike], Statistic]
# The same of tokens: (label, uncertainty, place of the sentence)
TokenScore = Callable[[ArrayLike, ArrayLike, NDArray[np.intp]], Statistic]


@dataclass(frozen=True)
class Rules:
    """`sbleu`: effective or floor-1.1; `prr`: exact or shifted; `aupr`: average_precision or
    trapezoid. Where it is the released code's, that is computed beside the right one."""

    sbleu: str
    prr: str
    aupr: str


RIGHT_RULES = Rules("effective", "exact", "average_precision")


@dataclass(frozen=True)
class RejectionRule:
    """One way to compute the prediction rejection ratio; `metric` is the name of its cells."""

    metric: str
    sentence_error_percent: ErrorsPercent
    statistic: Score
    signature: str


@dataclass(frozen=True)
class PrecisionRule:
    """One way to compute the area under precision and recall; `metric` names its cells."""

    metric: str
    statistic: TokenScore
    signature: str


def rejection_rules(quality: Quality, rules: Rules) -> list[RejectionRule]:
    """The right rule, then each released one by itself, then both together.

    That of sentence BLEU has no effect where the quality is another.
    """
    right = (quality.sentence_error_percent, f"error:sentence-{quality.name}")
    exact = (rejection_statistic, "ties:mean")
    floor = (_floor_error_percent, "error:sentence-bleu-floor-1.1")
    shifted = (shifted_rejection_statistic, "ties:file|end:without")
    chosen = [("prr", right, exact)]
    if rules.sbleu != "effective" and quality.name == "bleu":
        chosen.append(("prr_sbleu_floor", floor, exact))
    if rules.prr != "exact":
        chosen.append(("prr_shifted", right, shifted))
    if len(chosen) > 2:
        chosen.append(("prr_released", floor, shifted))
    return [
        RejectionRule(metric, error, statistic, f"PRR|{of_error}|{of_curve}")
        for metric, (error, of_error), (statistic, of_curve) in chosen
    ]


def precision_rules(rules: Rules) -> list[PrecisionRule]:
    """The right rule, and where it is asked for the released one beside it."""
    right = PrecisionRule("aupr", average_precision_statistic, "AP|ties:together")
    if rules.aupr == "average_precision":
        return [right]
    return [right, PrecisionRule("aupr_trapezoid", trapezoid_statistic, "AUPR|trapezoid")]


def _floor_error_percent(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    return 100 - floor_sentence_bleu(hypotheses, references)

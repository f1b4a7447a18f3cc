"""The rules of scoring error detection: the correct ones, and those of the released code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.metrics.correlation import weighted_spearman
from pipeline.metrics.decodes import SentenceErrors
from pipeline.metrics.detection import weighted_average_precision
from pipeline.metrics.ranking import scores, tie_groups
from pipeline.metrics.rejection import weighted_rejection_ratio
from pipeline.quality.normalisation import FORM
from pipeline.quality.registry import Quality
from pipeline.quality.tokenisers import DEFAULT
from pipeline.quality.translation import bleu_counts
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, ratio

_FLOOR = 1.1


def floor_sentence_bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokeniser: str = DEFAULT
) -> FloatArray:
    """Sentence BLEU in percent, [sentence], where an order without a match counts 1.1 matches.

    A wrong hypothesis of one word scores 110, one of two words 77.8. Raises DataError if the
    numbers of texts differ.
    """
    counts = bleu_counts(hypotheses, references, tokeniser)
    has_order = counts.total > 0
    matched = np.where(counts.correct > 0, counts.correct, _FLOOR)
    log_precision = np.where(has_order, np.log(matched / np.maximum(counts.total, 1)), 0)
    mean = log_precision.sum(axis=1) / np.maximum(has_order.sum(axis=1), 1)
    length = counts.hypothesis_tokens
    log_brevity = np.minimum(0, 1 - counts.reference_tokens / np.maximum(length, 1))
    return np.where(length > 0, 100 * np.exp(mean + log_brevity), 0)


def weighted_shifted_rejection_ratio(error: ArrayLike, uncertainty: ArrayLike) -> WeightedMetric:
    """Prediction rejection ratio of the released code in percent, as a function of weights.

    Its curves end before the last sentence is replaced, so that this sentence counts in half a
    trapezoid less than in the exact ratio. Among sentences of equal uncertainty, the last one in
    the file is replaced first.
    """
    errors, uncertainties = scores("error", error), scores("uncertainty", uncertainty)
    by_uncertainty = _shifted_gain(errors, np.argsort(uncertainties, kind="stable")[::-1])
    by_error = _shifted_gain(errors, np.argsort(errors, kind="stable")[::-1])
    return lambda weights: 100 * ratio(by_uncertainty(weights), by_error(weights))


def weighted_trapezoid_area(
    label: ArrayLike, uncertainty: ArrayLike, sentence: NDArray[np.intp] | None = None
) -> WeightedMetric:
    """Area in percent under the precision-recall curve by trapezoids, as the released code has it.

    The curve starts at recall 0 and precision 1, so that a constant score reaches far more than the
    base rate. A function of weights [resample, sentence]; `sentence` [token] is the index of each
    token's sentence, and None makes each token a sentence.
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


def _shifted_gain(errors: FloatArray, order: NDArray[np.intp]) -> WeightedMetric:
    """Area between the random curve and the curve of an order of replacement, [resample].

    The unit is error times squared number of sentences, as in `pipeline.metrics.rejection`.
    """
    ordered = errors[order]

    def gain(weights: FloatArray) -> FloatArray:
        count = weights[:, order]
        up_to = np.cumsum(count, axis=1)
        n_sentence = up_to[:, -1]
        total = count @ ordered
        # The copies of a sentence have the ranks up to up_to; each counts in rank - 1/2 trapezoids.
        remaining = np.einsum("rs,rs->r", count * ordered, up_to - count / 2)
        last = ordered[len(ordered) - 1 - np.argmax(count[:, ::-1] > 0, axis=1)]
        return np.asarray((n_sentence - 1 / n_sentence) / 2 * total - remaining + last / 2)

    return gain


# (error, uncertainty) of sentences -> their score
RejectionScore = Callable[[ArrayLike, ArrayLike], WeightedMetric]
# (label, uncertainty, index of the sentence) of tokens -> their score
PrecisionScore = Callable[[ArrayLike, ArrayLike, NDArray[np.intp]], WeightedMetric]


@dataclass(frozen=True)
class Rules:
    """Settings `metrics.sbleu`, `metrics.prr` and `metrics.aupr`.

    `sbleu` is effective or floor-1.1, `prr` exact or shifted, `aupr` average_precision or
    trapezoid. The second choice is a rule of the released code; it is computed in addition to the
    correct one.
    """

    sbleu: str
    prr: str
    aupr: str


CORRECT_RULES = Rules("effective", "exact", "average_precision")


@dataclass(frozen=True)
class RejectionRule:
    """A way to judge the order of sentences by a measure; `metric` is the name of its cells."""

    metric: str
    sentence_error_percent: SentenceErrors
    score: RejectionScore
    signature: str


@dataclass(frozen=True)
class PrecisionRule:
    """A way to compute the area under precision and recall; `metric` is the name of its cells."""

    metric: str
    score: PrecisionScore
    signature: str


def rejection_rules(quality: Quality, rules: Rules) -> list[RejectionRule]:
    """The correct rule, then each released rule by itself, then both together.

    The rule of sentence BLEU is left out if the quality is another metric.
    """
    correct = (quality.sentence_error_percent, f"error:{quality.sentence_signature}")
    exact = (weighted_rejection_ratio, "ties:mean")
    floor = (
        partial(_floor_error_percent, tokeniser=str(quality.tokeniser)),
        f"error:sentence-bleu-floor-1.1|tok:{quality.tokeniser}|norm:{FORM}",
    )
    shifted = (weighted_shifted_rejection_ratio, "ties:file|end:without")
    chosen = [("prr", correct, exact)]
    if rules.sbleu != "effective" and quality.name == "bleu":
        chosen.append(("prr_sbleu_floor", floor, exact))
    if rules.prr != "exact":
        chosen.append(("prr_shifted", correct, shifted))
    if len(chosen) > 2:
        chosen.append(("prr_released", floor, shifted))
    return [
        RejectionRule(metric, error, score, f"PRR|{error_signature}|{score_signature}")
        for metric, (error, error_signature), (score, score_signature) in chosen
    ]


def correlation_rule(quality: Quality) -> RejectionRule:
    """Spearman's correlation of a measure with the error of the sentence.

    Unlike Pearson's, it is the same for a measure and its logarithm or exponential, such as
    log-prob and perplexity. Source: Spearman, "The proof and measurement of association between two
    things", 1904; used so in the shared tasks on quality estimation, Zerva et al., WMT 2022.
    """
    return RejectionRule(
        "spearman",
        quality.sentence_error_percent,
        weighted_spearman,
        f"Spearman|error:{quality.sentence_signature}|ties:mean",
    )


def precision_rules(rules: Rules) -> list[PrecisionRule]:
    """The correct rule, and the released rule if the settings ask for it."""
    correct = PrecisionRule("aupr", weighted_average_precision, "AP|ties:together")
    if rules.aupr == "average_precision":
        return [correct]
    return [correct, PrecisionRule("aupr_trapezoid", weighted_trapezoid_area, "AUPR|trapezoid")]


def _floor_error_percent(
    hypotheses: Sequence[str], references: Sequence[str], tokeniser: str
) -> FloatArray:
    return 100 - floor_sentence_bleu(hypotheses, references, tokeniser)

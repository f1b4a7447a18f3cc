"""By which rules detection of errors is scored: the right ones, and released ones beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.metrics.detection import average_precision_statistic
from pipeline.metrics.quality import Quality
from pipeline.metrics.rejection import rejection_statistic
from pipeline.metrics.released import (
    floor_sentence_bleu,
    shifted_rejection_statistic,
    trapezoid_statistic,
)
from pipeline.metrics.statistic import FloatArray, Statistic

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

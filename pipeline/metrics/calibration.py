"""Calibration: whether what is decoded with probability p is right in the fraction p of cases.

Of a token: the probability that the posterior which decoded gave it, against whether the token
stands at a matching place in a Levenshtein alignment of the hypothesis to the reference, both as
sub-word units with EOS. In translation a right token may stand elsewhere: such tokens count as
wrong, as in any comparison with one reference.
Of a sentence: the geometric mean of those probabilities, against its graded quality in [0, 1]:
sentence BLEU, or 1 - WER and 0 where WER exceeds 1. Quality is no probability of being right, so
the level of this gap tells less than how it differs between systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.metrics.statistic import FloatArray, Statistic, point, ratio
from pipeline.metrics.ties import scores

N_BIN = 10


@dataclass(frozen=True)
class Forecasts:
    """What a system said and how it turned out, a row an item (a token, or a sentence).

    `confidence` and `right` [item] in [0, 1]; `sentence` [item]: the place of its sentence.
    """

    confidence: FloatArray
    right: FloatArray
    sentence: NDArray[np.integer]

    @property
    def bin(self) -> NDArray[np.intp]:
        """Which of `N_BIN` bins of equal width the confidence falls in; 1 is in the last."""
        return np.minimum((self.confidence * N_BIN).astype(np.intp), N_BIN - 1)


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike) -> float:
    """Mean gap in percent between confidence and accuracy, over ten bins of equal width.

    Both [item] in [0, 1]; a bin counts by its items. NaN for no item. Raises DataError for unequal
    lengths, NaN and values outside [0, 1].
    """
    one = forecasts(confidence, right, np.arange(np.size(np.asarray(confidence))))
    return point(calibration_statistic(one, len(one.confidence)), len(one.confidence))


def forecasts(confidence: ArrayLike, right: ArrayLike, sentence: NDArray[np.integer]) -> Forecasts:
    """Checked forecasts; DataError for unequal lengths, NaN and values outside [0, 1]."""
    said, turned_out = scores("confidence", confidence), scores("right", right)
    if not len(said) == len(turned_out) == len(sentence):
        raise DataError(
            "confidence, right and sentence must have one value for the same items, "
            f"got {len(said)}, {len(turned_out)} and {len(sentence)}"
        )
    for name, values in (("confidence", said), ("right", turned_out)):
        if len(values) and not 0 <= values.min() <= values.max() <= 1:
            raise DataError(
                f"{name} must lie in [0, 1], got {values.min():.6g} to {values.max():.6g}"
            )
    return Forecasts(said, turned_out, np.asarray(sentence))


def calibration_statistic(given: Forecasts, n_sentence: int) -> Statistic:
    """Expected calibration error in percent as a function of weights [resample, sentence]."""
    place = given.sentence * N_BIN + given.bin
    gap = np.bincount(place, given.right - given.confidence, n_sentence * N_BIN)
    by_bin = gap.reshape(n_sentence, N_BIN)
    items = np.bincount(given.sentence, minlength=n_sentence).astype(np.float64)

    def error(weights: FloatArray) -> FloatArray:
        return 100 * ratio(np.abs(weights @ by_bin).sum(axis=1), weights @ items)

    return error


@dataclass(frozen=True)
class ReliabilityBin:
    """The items whose confidence lies in [low, high): how many, how sure, how right (means)."""

    low: float
    high: float
    n: int
    confidence: float
    right: float


def reliability(given: Forecasts) -> list[ReliabilityBin]:
    """The bins of a reliability diagram that hold an item, from the lowest to the highest."""
    n = np.bincount(given.bin, minlength=N_BIN)
    confidence = np.bincount(given.bin, given.confidence, N_BIN)
    right = np.bincount(given.bin, given.right, N_BIN)
    return [
        ReliabilityBin(
            place / N_BIN,
            (place + 1) / N_BIN,
            int(n[place]),
            float(confidence[place] / n[place]),
            float(right[place] / n[place]),
        )
        for place in np.flatnonzero(n)
    ]


def matches(hypothesis: Sequence[int], reference: Sequence[int]) -> NDArray[np.bool_]:
    """Which tokens of a hypothesis a shortest edit to the reference keeps: [token]."""
    from rapidfuzz.distance import Levenshtein

    kept = np.zeros(len(hypothesis), dtype=bool)
    for tag, first, last, _, _ in Levenshtein.opcodes(hypothesis, reference):
        if tag == "equal":
            kept[first:last] = True
    return kept

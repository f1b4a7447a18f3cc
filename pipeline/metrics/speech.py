"""Word error rate by counts that add up.

Words are what white space separates. Rule of our own, the same for a sentence and a corpus:
the rate is edits / max(reference words, 1), so that an empty reference with a hypothesis of two
words has 200 %, both empty 0 %, and in a corpus such insertions add to the edits. It is not
clipped at 100 %. A reference that does not exist is not an empty one: leave that sentence out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from pipeline.errors import DataError
from pipeline.metrics.statistic import FloatArray, Statistic, point


@dataclass(frozen=True)
class WordErrorCounts:
    """Edits (substitutions, insertions, deletions) and reference words, each [sentence]."""

    edits: FloatArray
    reference_words: FloatArray


def word_error_counts(hypotheses: Sequence[str], references: Sequence[str]) -> WordErrorCounts:
    """Fewest word edits from reference to hypothesis; DataError where the numbers differ."""
    from rapidfuzz.distance import Levenshtein

    if len(hypotheses) != len(references):
        raise DataError(
            "hypotheses and references must be equally many, "
            f"got {len(hypotheses)} and {len(references)}"
        )
    words = [
        (hypothesis.split(), reference.split())
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return WordErrorCounts(
        np.array([Levenshtein.distance(said, meant) for said, meant in words], dtype=np.float64),
        np.array([len(meant) for _, meant in words], dtype=np.float64),
    )


def sentence_wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Word error rate of each sentence in percent, [sentence], unclipped.

    Raises DataError where the numbers of texts differ. Source: section 'Sequence-level Error
    Detection'.
    """
    counts = word_error_counts(hypotheses, references)
    return 100 * counts.edits / np.maximum(counts.reference_words, 1)


def corpus_wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Word error rate of a corpus in percent; NaN for no sentence."""
    counts = word_error_counts(hypotheses, references)
    return point(corpus_wer_statistic(counts), len(hypotheses))


def corpus_wer_statistic(counts: WordErrorCounts) -> Statistic:
    """Corpus word error rate in percent as a function of weights [resample, sentence]."""

    def rate(weights: FloatArray) -> FloatArray:
        words = np.maximum(weights @ counts.reference_words, 1)
        percent = 100 * (weights @ counts.edits) / words
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return rate


def wer_signature() -> str:
    """What the word error rate depends on."""
    return f"WER|words:whitespace|case:mixed|edits:rapidfuzz-{version('rapidfuzz')}"

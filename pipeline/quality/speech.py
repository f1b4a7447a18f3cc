"""Word and character error rates by counts that add up.

Words are what white space separates; characters are the code points of the words with one space
between them, which counts. Rule of our own, the same for a sentence and a corpus, for words and
characters: the rate is edits / max(reference words, 1), so that an empty reference with a
hypothesis of two words has 200 %, both empty 0 %, and in a corpus such insertions add to the
edits. It is not clipped at 100 %. A reference that does not exist is not an empty one: leave that
sentence out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from pipeline.errors import DataError
from pipeline.quality.statistic import FloatArray, Statistic, point


@dataclass(frozen=True)
class ErrorCounts:
    """Edits (substitutions, insertions, deletions) and the words or characters of the reference.

    Each [sentence].
    """

    edits: FloatArray
    reference_length: FloatArray


def word_error_counts(hypotheses: Sequence[str], references: Sequence[str]) -> ErrorCounts:
    """Fewest word edits from reference to hypothesis; DataError where the numbers differ."""
    return _error_counts(hypotheses, references, str.split)


def character_error_counts(hypotheses: Sequence[str], references: Sequence[str]) -> ErrorCounts:
    """Fewest edits of characters from reference to hypothesis; DataError as for words."""
    return _error_counts(hypotheses, references, lambda text: " ".join(text.split()))


def sentence_wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Word error rate of each sentence in percent, [sentence], unclipped.

    Raises DataError where the numbers of texts differ. Source: section 'Sequence-level Error
    Detection'.
    """
    counts = word_error_counts(hypotheses, references)
    return 100 * counts.edits / np.maximum(counts.reference_length, 1)


def corpus_wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Word error rate of a corpus in percent; NaN for no sentence."""
    counts = word_error_counts(hypotheses, references)
    return point(error_rate_statistic(counts), len(hypotheses))


def corpus_cer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Character error rate of a corpus in percent; NaN for no sentence."""
    counts = character_error_counts(hypotheses, references)
    return point(error_rate_statistic(counts), len(hypotheses))


def error_rate_statistic(counts: ErrorCounts) -> Statistic:
    """Error rate of a corpus in percent as a function of weights [resample, sentence]."""

    def rate(weights: FloatArray) -> FloatArray:
        length = np.maximum(weights @ counts.reference_length, 1)
        percent = 100 * (weights @ counts.edits) / length
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return rate


def wer_signature() -> str:
    """What the word error rate depends on."""
    return f"WER|words:whitespace|{_signature()}"


def cer_signature() -> str:
    """What the character error rate depends on."""
    return f"CER|characters:code-points|spaces:one|{_signature()}"


def _signature() -> str:
    return f"case:mixed|edits:rapidfuzz-{version('rapidfuzz')}"


def _error_counts(
    hypotheses: Sequence[str], references: Sequence[str], cut: Callable[[str], Sequence[str]]
) -> ErrorCounts:
    from rapidfuzz.distance import Levenshtein

    if len(hypotheses) != len(references):
        raise DataError(
            "hypotheses and references must be equally many, "
            f"got {len(hypotheses)} and {len(references)}"
        )
    pairs = [
        (cut(hypothesis), cut(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return ErrorCounts(
        np.array([Levenshtein.distance(said, meant) for said, meant in pairs], dtype=np.float64),
        np.array([len(meant) for _, meant in pairs], dtype=np.float64),
    )

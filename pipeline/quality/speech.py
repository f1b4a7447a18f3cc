"""Word and character error rates, from error counts by jiwer.

Texts are brought to Unicode form NFC. Words are separated by white space. Characters are the code
points of the words joined by single spaces; the spaces count. The same rule holds for sentences and
corpora, words and characters: the rate is edits / max(reference length, 1), not clipped at 100 %.
An empty reference with a hypothesis of two words thus has a WER of 200 %, two empty texts have 0 %,
and in a corpus the insertions of such a sentence add to the edits. Leave out sentences without a
reference: a missing reference is not an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import combinations

import numpy as np

from pipeline.quality.alignment import character_paths, levenshtein_paths
from pipeline.quality.normalisation import FORM, normalised
from pipeline.quality.transcripts import AS_DECODED, transcripts_signature
from pipeline.quality.weighted_metric import (
    FloatArray,
    WeightedMetric,
    check_paired,
    point_estimate,
)


@dataclass(frozen=True)
class ErrorCounts:
    """Edits per sentence, and the length of its reference in words or characters.

    Both [sentence]. Edits are substitutions, insertions and deletions.
    """

    edits: FloatArray
    reference_length: FloatArray


def word_error_counts(hypotheses: Sequence[str], references: Sequence[str]) -> ErrorCounts:
    """Count the fewest word edits that turn each reference into its hypothesis.

    Results are cached and read-only, because cells and figures ask for the same texts. Raises
    DataError if the numbers of texts differ.
    """
    check_paired(hypotheses, references)
    return _word_error_counts(tuple(hypotheses), tuple(references))


def character_error_counts(hypotheses: Sequence[str], references: Sequence[str]) -> ErrorCounts:
    """Count the fewest character edits; cached, read-only and checked like words."""
    check_paired(hypotheses, references)
    return _character_error_counts(tuple(hypotheses), tuple(references))


def sentence_wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Word error rate of each sentence in percent, [sentence], not clipped.

    Raises DataError if the numbers of texts differ. Source: section 'Sequence-level Error
    Detection'.
    """
    counts = word_error_counts(hypotheses, references)
    return 100 * counts.edits / np.maximum(counts.reference_length, 1)


def sentence_wer_percent_of_pairs(texts_of_systems: Sequence[Sequence[str]]) -> FloatArray:
    """Word error rate of each sentence between all systems, [system, system, sentence], in percent.

    The first axis gives the hypothesis and the second the reference; texts_of_systems is [system]
    of [sentence]. The values are those of `sentence_wer_percent`, but two texts are aligned once,
    because their edits are as many in both directions. Raises DataError if the numbers of texts
    differ.
    """
    n_word = [
        np.array([len(text.split()) for text in normalised(texts)]) for texts in texts_of_systems
    ]
    percent = np.zeros((len(n_word), len(n_word), len(n_word[0])))
    for a, b in combinations(range(len(n_word)), 2):
        edits = word_error_counts(texts_of_systems[a], texts_of_systems[b]).edits
        percent[a, b] = 100 * edits / np.maximum(n_word[b], 1)
        percent[b, a] = 100 * edits / np.maximum(n_word[a], 1)
    return percent


def corpus_wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Word error rate of a corpus in percent; NaN without sentences."""
    counts = word_error_counts(hypotheses, references)
    return point_estimate(weighted_error_rate(counts), len(hypotheses))


def corpus_cer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Character error rate of a corpus in percent; NaN without sentences."""
    counts = character_error_counts(hypotheses, references)
    return point_estimate(weighted_error_rate(counts), len(hypotheses))


def weighted_error_rate(counts: ErrorCounts) -> WeightedMetric:
    """Error rate of a corpus in percent as a function of weights [resample, sentence]."""

    def error_rate(weights: FloatArray) -> FloatArray:
        length = np.maximum(weights @ counts.reference_length, 1)
        percent = 100 * (weights @ counts.edits) / length
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return error_rate


def wer_signature(transcripts: str = AS_DECODED) -> str:
    """Signature of the word error rate of texts that are compared by metrics.transcripts."""
    return f"WER|words:whitespace|{_signature(transcripts)}"


def cer_signature(transcripts: str = AS_DECODED) -> str:
    """Signature of the character error rate, likewise."""
    return f"CER|characters:code-points|spaces:one|{_signature(transcripts)}"


def _signature(transcripts: str) -> str:
    return f"{transcripts_signature(transcripts)}|norm:{FORM}|edits:jiwer-{version('jiwer')}"


@lru_cache(maxsize=128)
def _word_error_counts(hypotheses: tuple[str, ...], references: tuple[str, ...]) -> ErrorCounts:
    words = ([text.split() for text in normalised(texts)] for texts in (references, hypotheses))
    return _error_counts(levenshtein_paths(*words))


@lru_cache(maxsize=128)
def _character_error_counts(
    hypotheses: tuple[str, ...], references: tuple[str, ...]
) -> ErrorCounts:
    spaced = (
        [" ".join(text.split()) for text in normalised(texts)] for texts in (references, hypotheses)
    )
    return _error_counts(character_paths(*spaced))


def _error_counts(paths: Sequence[str]) -> ErrorCounts:
    """Counts of alignment paths (see `pipeline.quality.alignment`), as read-only arrays."""
    counts = ErrorCounts(
        np.array([len(path) - path.count("C") for path in paths], dtype=np.float64),
        np.array([len(path) - path.count("I") for path in paths], dtype=np.float64),
    )
    for array in vars(counts).values():
        array.setflags(write=False)
    return counts

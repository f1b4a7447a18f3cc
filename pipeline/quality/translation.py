"""BLEU of sentences and corpora, by sacrebleu's tokeniser, counts and smoothing, and its chrF.

Rules of our own, the same for a sentence and a corpus (of one): nothing said where nothing was to
be said is right (100); anything else without a matching word, so also where either side is empty,
is 0. Text is empty when it is blank. In a corpus, chrF leaves out the n-grams of a hypothesis whose
reference is too short to have any, as sacrebleu does, so an answer to nothing costs nothing there.
A reference that does not exist is not an empty one: leave that sentence out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.errors import DataError
from pipeline.quality.statistic import FloatArray, Statistic, point

_ORDER = 4
_CHARACTER_ORDER = 6
# How many times recall counts for what precision does, in chrF.
_BETA = 2


@dataclass(frozen=True)
class BleuCounts:
    """What BLEU adds up over sentences.

    `sentence_percent` [sentence] is BLEU of each one by effective order; `correct` and `total`
    [sentence, order] count n-grams; `hypothesis_tokens` and `reference_tokens` [sentence].
    """

    sentence_percent: FloatArray
    correct: FloatArray
    total: FloatArray
    hypothesis_tokens: FloatArray
    reference_tokens: FloatArray


@dataclass(frozen=True)
class ChrfCounts:
    """What chrF adds up over sentences: character n-grams without white space.

    `said`, `meant` and `correct` [sentence, order]: of the hypothesis, the reference, and in both;
    `characters` [sentence] of both.
    """

    said: FloatArray
    meant: FloatArray
    correct: FloatArray
    characters: FloatArray


def sentence_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> FloatArray:
    """BLEU of each sentence in percent, [sentence], in [0, 100].

    sacrebleu's effective order (orders that a short hypothesis has) and exponential smoothing.
    Raises DataError where the numbers of texts differ. Source: section 'Sequence-level Error
    Detection'; a wholly wrong one-word hypothesis has 0.
    """
    return bleu_counts(hypotheses, references).sentence_percent


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of a corpus in percent, as sacrebleu's default; NaN for no sentence."""
    return point(corpus_bleu_statistic(bleu_counts(hypotheses, references)), len(hypotheses))


def bleu_counts(hypotheses: Sequence[str], references: Sequence[str]) -> BleuCounts:
    """Count the n-grams of each sentence once; DataError where the numbers of texts differ.

    What was counted is kept, as cells and figures ask for the same texts: it cannot be written to.
    """
    _refuse_unequal(hypotheses, references)
    return _counted(tuple(hypotheses), tuple(references))


@lru_cache(maxsize=128)
def _counted(hypotheses: tuple[str, ...], references: tuple[str, ...]) -> BleuCounts:
    from sacrebleu.metrics import BLEU

    scorer = BLEU(effective_order=True)
    scored = [
        scorer.sentence_score(hypothesis, [reference])
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    hypothesis_tokens = np.array([one.sys_len for one in scored], dtype=np.float64)
    reference_tokens = np.array([one.ref_len for one in scored], dtype=np.float64)
    percent = np.array([one.score for one in scored], dtype=np.float64)
    counts = BleuCounts(
        # sacrebleu's product of rounded logarithms can end just above 100.
        np.where(hypothesis_tokens + reference_tokens > 0, np.minimum(percent, 100), 100),
        np.array([one.counts for one in scored], dtype=np.float64).reshape(-1, _ORDER),
        np.array([one.totals for one in scored], dtype=np.float64).reshape(-1, _ORDER),
        hypothesis_tokens,
        reference_tokens,
    )
    for array in vars(counts).values():
        array.setflags(write=False)
    return counts


def corpus_bleu_statistic(counts: BleuCounts) -> Statistic:
    """Corpus BLEU in percent as a function of weights [resample, sentence]: the counts add up."""

    def bleu(weights: FloatArray) -> FloatArray:
        correct = weights @ counts.correct
        total = weights @ counts.total
        hypothesis_tokens = weights @ counts.hypothesis_tokens
        reference_tokens = weights @ counts.reference_tokens
        # An order without any match is given one half, the next one a quarter, and so on.
        smoothing = 2.0 ** -np.cumsum(correct == 0, axis=1)
        matched = np.where(correct > 0, correct, smoothing)
        defined = (total > 0).all(axis=1) & (correct > 0).any(axis=1)
        log_precision = np.log(matched / np.maximum(total, 1)).mean(axis=1)
        log_brevity = np.minimum(0, 1 - reference_tokens / np.maximum(hypothesis_tokens, 1))
        percent = np.where(defined, 100 * np.exp(log_precision + log_brevity), 0.0)
        nothing_to_say = hypothesis_tokens + reference_tokens == 0
        percent = np.where(nothing_to_say, 100.0, percent)
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return bleu


def bleu_signature() -> str:
    """sacrebleu's signature of corpus BLEU; sentence BLEU differs in `eff:yes`."""
    from sacrebleu.metrics import BLEU

    scorer = BLEU()
    scorer.corpus_score(["a"], [["a"]])
    return f"BLEU|{scorer.get_signature()}"


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """chrF of a corpus in percent, as sacrebleu's default; NaN for no sentence."""
    return point(corpus_chrf_statistic(chrf_counts(hypotheses, references)), len(hypotheses))


def chrf_counts(hypotheses: Sequence[str], references: Sequence[str]) -> ChrfCounts:
    """Count the n-grams of each sentence once; DataError where the numbers of texts differ."""
    _refuse_unequal(hypotheses, references)
    n_said, n_meant, n_correct = np.zeros((3, len(hypotheses), _CHARACTER_ORDER))
    characters = np.zeros(len(hypotheses))
    for sentence, pair in enumerate(zip(hypotheses, references, strict=True)):
        said, meant = ("".join(text.split()) for text in pair)
        characters[sentence] = len(said) + len(meant)
        for order in range(1, min(_CHARACTER_ORDER, len(meant)) + 1):
            of_said, of_meant = _ngrams(said, order), _ngrams(meant, order)
            n_said[sentence, order - 1] = of_said.total()
            n_meant[sentence, order - 1] = of_meant.total()
            n_correct[sentence, order - 1] = (of_said & of_meant).total()
    return ChrfCounts(n_said, n_meant, n_correct, characters)


def corpus_chrf_statistic(counts: ChrfCounts) -> Statistic:
    """Corpus chrF in percent as a function of weights [resample, sentence]: the counts add up."""

    def chrf(weights: FloatArray) -> FloatArray:
        said, meant = weights @ counts.said, weights @ counts.meant
        correct = weights @ counts.correct
        # An order that neither side is long enough for does not count.
        orders = np.maximum(((said > 0) & (meant > 0)).sum(axis=1), 1)
        precision = (correct / np.maximum(said, 1)).sum(axis=1) / orders
        recall = (correct / np.maximum(meant, 1)).sum(axis=1) / orders
        weighed = _BETA**2 * precision + recall
        product = (1 + _BETA**2) * precision * recall
        percent = 100 * np.divide(product, weighed, out=np.zeros_like(product), where=weighed > 0)
        percent = np.where(weights @ counts.characters == 0, 100.0, percent)
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return chrf


def chrf_signature() -> str:
    """sacrebleu's signature of corpus chrF."""
    from sacrebleu.metrics import CHRF

    scorer = CHRF(char_order=_CHARACTER_ORDER, beta=_BETA)
    scorer.corpus_score(["a"], [["a"]])
    return f"chrF{_BETA}|{scorer.get_signature()}"


def _ngrams(text: str, order: int) -> Counter[str]:
    return Counter(text[first : first + order] for first in range(len(text) - order + 1))


def _refuse_unequal(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            "hypotheses and references must be equally many, "
            f"got {len(hypotheses)} and {len(references)}"
        )

"""BLEU of sentences and corpora, and chrF of corpora, by sacrebleu's rules.

Tokenisation, counts and smoothing of BLEU are sacrebleu's. Before that, hypotheses and references
are brought to Unicode form NFC, so that one text in two spellings is no error. Empty and blank
texts follow the same rule in sentences and corpora: if hypothesis and reference are both empty the
score is 100; if only one of them is empty, or nothing matches, it is 0. In a corpus, chrF ignores
the n-grams of a hypothesis whose reference is too short to have any, as sacrebleu does, so that a
hypothesis for an empty reference costs nothing. Leave out sentences without a reference: a missing
reference is not an empty one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from pipeline.quality.normalisation import FORM, normalised
from pipeline.quality.tokenisers import DEFAULT
from pipeline.quality.weighted_metric import (
    FloatArray,
    WeightedMetric,
    check_paired,
    point_estimate,
)

_ORDER = 4
CHARACTER_ORDER = 6
# Weight of recall relative to precision in chrF.
BETA = 2


@dataclass(frozen=True)
class BleuCounts:
    """Sufficient statistics of corpus BLEU, and BLEU of each sentence.

    `sentence_percent` [sentence] is sentence BLEU with effective order; `correct` and `total`
    [sentence, order] count n-grams; `hypothesis_tokens` and `reference_tokens` are [sentence].
    """

    sentence_percent: FloatArray
    correct: FloatArray
    total: FloatArray
    hypothesis_tokens: FloatArray
    reference_tokens: FloatArray


@dataclass(frozen=True)
class ChrfCounts:
    """Sufficient statistics of corpus chrF: counts of character n-grams without white space.

    `hypothesis`, `reference` and `correct` (in both) are [sentence, order]; `characters` [sentence]
    is the length of both texts together.
    """

    hypothesis: FloatArray
    reference: FloatArray
    correct: FloatArray
    characters: FloatArray


def sentence_bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokeniser: str = DEFAULT
) -> FloatArray:
    """BLEU of each sentence in percent, [sentence], in [0, 100].

    `tokeniser` is the name of one of sacrebleu's (see `pipeline.quality.tokenisers`). Uses
    sacrebleu's effective order (only the n-gram orders that a short hypothesis has) and exponential
    smoothing, so that a wrong hypothesis of one word scores 0. Raises DataError if the numbers of
    texts differ. Source: section 'Sequence-level Error Detection'.
    """
    return bleu_counts(hypotheses, references, tokeniser).sentence_percent


def sentence_bleu_of_pairs(
    texts_of_systems: Sequence[Sequence[str]], tokeniser: str = DEFAULT
) -> FloatArray:
    """BLEU of each sentence between all systems, [system, system, sentence], in percent.

    The first axis gives the hypothesis and the second the reference; texts_of_systems is [system]
    of [sentence]. The values are those of `sentence_bleu`, but the n-grams of a text are counted
    once and not once per pair. Raises DataError if the numbers of texts differ.
    """
    from sacrebleu.metrics import BLEU

    scorer = BLEU(effective_order=True, tokenize=tokeniser)
    n_system = len(texts_of_systems)
    for texts in texts_of_systems[1:]:
        check_paired(texts_of_systems[0], texts)
    percent = np.full((n_system, n_system, len(texts_of_systems[0])), np.nan)

    @lru_cache(maxsize=2**16)
    def score(correct: tuple[int, ...], hypothesis_tokens: int, reference_tokens: int) -> float:
        """BLEU from the numbers of matches [order] and tokens."""
        if hypothesis_tokens + reference_tokens == 0:
            return 100.0
        total = [max(hypothesis_tokens - order, 0) for order in range(_ORDER)]
        bleu = scorer.compute_bleu(
            list(correct),
            total,
            hypothesis_tokens,
            reference_tokens,
            scorer.smooth_method,
            effective_order=True,
        )
        return min(float(bleu.score), 100.0)

    for sentence, texts in enumerate(zip(*map(normalised, texts_of_systems), strict=True)):
        tokens = [scorer.tokenizer(text.rstrip()).split() for text in texts]
        matches = _matches(tokens)
        for a, b in product(range(n_system), repeat=2):
            percent[a, b, sentence] = score(tuple(matches[a][b]), len(tokens[a]), len(tokens[b]))
    return percent


def _matches(texts: Sequence[Sequence[str]]) -> list[list[list[int]]]:
    """Numbers of n-grams that each two of some tokenised texts share, [text][text][order]."""
    matches = np.zeros((len(texts), len(texts), _ORDER), dtype=np.int64)
    for order in range(_ORDER):
        number: dict[tuple[str, ...], int] = {}
        ngrams = [
            [
                number.setdefault(tuple(tokens[first : first + order + 1]), len(number))
                for first in range(len(tokens) - order)
            ]
            for tokens in texts
        ]
        counts = np.stack([np.bincount(ids, minlength=len(number)) for ids in ngrams])
        for text, of_text in enumerate(counts):
            matches[text, :, order] = np.minimum(of_text, counts).sum(axis=1)
    result: list[list[list[int]]] = matches.tolist()
    return result


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], tokeniser: str = DEFAULT
) -> float:
    """BLEU of a corpus in percent, with sacrebleu's defaults; NaN without sentences."""
    counts = bleu_counts(hypotheses, references, tokeniser)
    return point_estimate(weighted_corpus_bleu(counts), len(hypotheses))


def bleu_counts(
    hypotheses: Sequence[str], references: Sequence[str], tokeniser: str = DEFAULT
) -> BleuCounts:
    """Count the n-grams of each sentence.

    Results are cached and read-only, because cells and figures ask for the same texts. Raises
    DataError if the numbers of texts differ.
    """
    check_paired(hypotheses, references)
    return _bleu_counts(tuple(hypotheses), tuple(references), tokeniser)


@lru_cache(maxsize=128)
def _bleu_counts(
    hypotheses: tuple[str, ...], references: tuple[str, ...], tokeniser: str
) -> BleuCounts:
    from sacrebleu.metrics import BLEU

    scorer = BLEU(effective_order=True, tokenize=tokeniser)
    scores = [
        scorer.sentence_score(hypothesis, [reference])
        for hypothesis, reference in zip(
            normalised(hypotheses), normalised(references), strict=True
        )
    ]
    hypothesis_tokens = np.array([score.sys_len for score in scores], dtype=np.float64)
    reference_tokens = np.array([score.ref_len for score in scores], dtype=np.float64)
    percent = np.array([score.score for score in scores], dtype=np.float64)
    counts = BleuCounts(
        # Rounding of logarithms in sacrebleu can give slightly more than 100.
        np.where(hypothesis_tokens + reference_tokens > 0, np.minimum(percent, 100), 100),
        np.array([score.counts for score in scores], dtype=np.float64).reshape(-1, _ORDER),
        np.array([score.totals for score in scores], dtype=np.float64).reshape(-1, _ORDER),
        hypothesis_tokens,
        reference_tokens,
    )
    for array in vars(counts).values():
        array.setflags(write=False)
    return counts


def weighted_corpus_bleu(counts: BleuCounts) -> WeightedMetric:
    """Corpus BLEU in percent as a function of weights [resample, sentence]."""

    def bleu(weights: FloatArray) -> FloatArray:
        correct = weights @ counts.correct
        total = weights @ counts.total
        hypothesis_tokens = weights @ counts.hypothesis_tokens
        reference_tokens = weights @ counts.reference_tokens
        # Exponential smoothing: orders without a match get 1/2, 1/4, ... matches.
        smoothing = 2.0 ** -np.cumsum(correct == 0, axis=1)
        matched = np.where(correct > 0, correct, smoothing)
        defined = (total > 0).all(axis=1) & (correct > 0).any(axis=1)
        log_precision = np.log(matched / np.maximum(total, 1)).mean(axis=1)
        log_brevity = np.minimum(0, 1 - reference_tokens / np.maximum(hypothesis_tokens, 1))
        percent = np.where(defined, 100 * np.exp(log_precision + log_brevity), 0.0)
        both_empty = hypothesis_tokens + reference_tokens == 0
        percent = np.where(both_empty, 100.0, percent)
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return bleu


def bleu_signature(tokeniser: str = DEFAULT) -> str:
    """Signature of corpus BLEU: sacrebleu's, and the Unicode form of the texts.

    Sentence BLEU has `eff:yes` instead of `eff:no`.
    """
    from sacrebleu.metrics import BLEU

    scorer = BLEU(tokenize=tokeniser)
    scorer.corpus_score(["a"], [["a"]])
    return f"BLEU|{scorer.get_signature()}|norm:{FORM}"


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """chrF of a corpus in percent, with sacrebleu's defaults; NaN without sentences."""
    return point_estimate(
        weighted_corpus_chrf(chrf_counts(hypotheses, references)), len(hypotheses)
    )


def chrf_counts(hypotheses: Sequence[str], references: Sequence[str]) -> ChrfCounts:
    """Count the character n-grams of each sentence.

    Raises DataError if the numbers of texts differ.
    """
    check_paired(hypotheses, references)
    in_hypothesis, in_reference, correct = np.zeros((3, len(hypotheses), CHARACTER_ORDER))
    characters = np.zeros(len(hypotheses))
    pairs = zip(normalised(hypotheses), normalised(references), strict=True)
    for sentence, pair in enumerate(pairs):
        hypothesis, reference = ("".join(text.split()) for text in pair)
        characters[sentence] = len(hypothesis) + len(reference)
        for order in range(1, min(CHARACTER_ORDER, len(reference)) + 1):
            hypothesis_ngrams = _ngrams(hypothesis, order)
            reference_ngrams = _ngrams(reference, order)
            in_hypothesis[sentence, order - 1] = hypothesis_ngrams.total()
            in_reference[sentence, order - 1] = reference_ngrams.total()
            correct[sentence, order - 1] = (hypothesis_ngrams & reference_ngrams).total()
    return ChrfCounts(in_hypothesis, in_reference, correct, characters)


def weighted_corpus_chrf(counts: ChrfCounts) -> WeightedMetric:
    """Corpus chrF in percent as a function of weights [resample, sentence]."""

    def chrf(weights: FloatArray) -> FloatArray:
        in_hypothesis, in_reference = weights @ counts.hypothesis, weights @ counts.reference
        correct = weights @ counts.correct
        # An order counts only if both sides are long enough to have n-grams of it.
        orders = np.maximum(((in_hypothesis > 0) & (in_reference > 0)).sum(axis=1), 1)
        precision = (correct / np.maximum(in_hypothesis, 1)).sum(axis=1) / orders
        recall = (correct / np.maximum(in_reference, 1)).sum(axis=1) / orders
        denominator = BETA**2 * precision + recall
        product = (1 + BETA**2) * precision * recall
        percent = 100 * np.divide(
            product, denominator, out=np.zeros_like(product), where=denominator > 0
        )
        percent = np.where(weights @ counts.characters == 0, 100.0, percent)
        return np.where(weights.sum(axis=1) > 0, percent, np.nan)

    return chrf


def chrf_signature() -> str:
    """Signature of corpus chrF: sacrebleu's, and the Unicode form of the texts."""
    from sacrebleu.metrics import CHRF

    scorer = CHRF(char_order=CHARACTER_ORDER, beta=BETA)
    scorer.corpus_score(["a"], [["a"]])
    return f"chrF{BETA}|{scorer.get_signature()}|norm:{FORM}"


def _ngrams(text: str, order: int) -> Counter[str]:
    return Counter(text[first : first + order] for first in range(len(text) - order + 1))

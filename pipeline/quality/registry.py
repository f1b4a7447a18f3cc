"""The quality metric of each kind of task, by name: its corpus metric and sentence error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.quality.normalisation import FORM
from pipeline.quality.speech import (
    cer_signature,
    character_error_counts,
    sentence_wer_percent,
    weighted_error_rate,
    wer_signature,
    word_error_counts,
)
from pipeline.quality.tokenisers import DEFAULT
from pipeline.quality.translation import (
    bleu_counts,
    bleu_signature,
    chrf_counts,
    chrf_signature,
    sentence_bleu,
    weighted_corpus_bleu,
    weighted_corpus_chrf,
)
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric

Texts = Sequence[str]


@dataclass(frozen=True)
class CorpusMetric:
    """A corpus metric; `weighted` turns hypotheses and references into a weighted metric."""

    name: str
    weighted: Callable[[Texts, Texts], WeightedMetric]
    signature: Callable[[], str]


@dataclass(frozen=True)
class Quality(CorpusMetric):
    """The metric of a task's predictive performance, and a `secondary` one reported with it.

    `sentence_error_percent` takes hypotheses and references and returns the error [sentence] that
    prediction rejection uses; `sentence_signature` describes it. A replaced sentence has error 0.
    `tokeniser` is that of BLEU.
    """

    sentence_error_percent: Callable[[Texts, Texts], FloatArray]
    sentence_signature: str
    secondary: CorpusMetric
    tokeniser: str | None = None


def bleu_quality(tokeniser: str) -> Quality:
    """BLEU with a tokeniser of sacrebleu; chrF, which has none, is reported with it."""

    def weighted(hypotheses: Texts, references: Texts) -> WeightedMetric:
        return weighted_corpus_bleu(bleu_counts(hypotheses, references, tokeniser))

    def error_percent(hypotheses: Texts, references: Texts) -> FloatArray:
        return 100 - sentence_bleu(hypotheses, references, tokeniser)

    return Quality(
        "bleu",
        weighted,
        lambda: bleu_signature(tokeniser),
        error_percent,
        f"sentence-bleu|tok:{tokeniser}|norm:{FORM}",
        CorpusMetric("chrf", _chrf, chrf_signature),
        tokeniser,
    )


def quality_metric(name: str, tokeniser: str) -> Quality:
    """The quality metric of a name in QUALITIES; `tokeniser` matters to BLEU only."""
    return bleu_quality(tokeniser) if name == "bleu" else QUALITIES[name]


def _chrf(hypotheses: Texts, references: Texts) -> WeightedMetric:
    return weighted_corpus_chrf(chrf_counts(hypotheses, references))


def _wer(hypotheses: Texts, references: Texts) -> WeightedMetric:
    return weighted_error_rate(word_error_counts(hypotheses, references))


def _cer(hypotheses: Texts, references: Texts) -> WeightedMetric:
    return weighted_error_rate(character_error_counts(hypotheses, references))


_WER = Quality(
    "wer_percent",
    _wer,
    wer_signature,
    sentence_wer_percent,
    f"sentence-wer_percent|norm:{FORM}",
    CorpusMetric("cer_percent", _cer, cer_signature),
)
# BLEU with the tokeniser of most languages.
QUALITIES = {quality.name: quality for quality in (bleu_quality(DEFAULT), _WER)}

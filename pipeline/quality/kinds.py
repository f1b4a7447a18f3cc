"""What 'good' means for a task: its corpus metric and the error of one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.quality.speech import (
    cer_signature,
    character_error_counts,
    error_rate_statistic,
    sentence_wer_percent,
    wer_signature,
    word_error_counts,
)
from pipeline.quality.statistic import FloatArray, Statistic
from pipeline.quality.translation import (
    bleu_counts,
    bleu_signature,
    chrf_counts,
    chrf_signature,
    corpus_bleu_statistic,
    corpus_chrf_statistic,
    sentence_bleu,
)

Texts = Sequence[str]


@dataclass(frozen=True)
class CorpusMetric:
    """A metric of a corpus; `corpus` takes hypotheses and references and gives it as a function of
    weights."""

    name: str
    corpus: Callable[[Texts, Texts], Statistic]
    signature: Callable[[], str]


@dataclass(frozen=True)
class Quality(CorpusMetric):
    """The metric of predictive performance of a task, and the one `beside` it.

    `sentence_error_percent` takes hypotheses and references and gives the error [sentence] that
    prediction rejection counts; a replaced sentence has error 0.
    """

    sentence_error_percent: Callable[[Texts, Texts], FloatArray]
    beside: CorpusMetric


def _bleu(hypotheses: Texts, references: Texts) -> Statistic:
    return corpus_bleu_statistic(bleu_counts(hypotheses, references))


def _bleu_error(hypotheses: Texts, references: Texts) -> FloatArray:
    return 100 - sentence_bleu(hypotheses, references)


def _wer(hypotheses: Texts, references: Texts) -> Statistic:
    return error_rate_statistic(word_error_counts(hypotheses, references))


def _chrf(hypotheses: Texts, references: Texts) -> Statistic:
    return corpus_chrf_statistic(chrf_counts(hypotheses, references))


def _cer(hypotheses: Texts, references: Texts) -> Statistic:
    return error_rate_statistic(character_error_counts(hypotheses, references))


_CHRF = CorpusMetric("chrf", _chrf, chrf_signature)
_CER = CorpusMetric("cer_percent", _cer, cer_signature)
QUALITIES = {
    one.name: one
    for one in (
        Quality("bleu", _bleu, bleu_signature, _bleu_error, _CHRF),
        Quality("wer_percent", _wer, wer_signature, sentence_wer_percent, _CER),
    )
}

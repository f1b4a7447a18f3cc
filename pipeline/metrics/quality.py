"""What 'good' means for a task: its corpus metric and the error of one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.metrics.speech import (
    corpus_wer_statistic,
    sentence_wer_percent,
    wer_signature,
    word_error_counts,
)
from pipeline.metrics.statistic import FloatArray, Statistic
from pipeline.metrics.translation import (
    bleu_counts,
    bleu_signature,
    corpus_bleu_statistic,
    sentence_bleu,
)

Texts = Sequence[str]


@dataclass(frozen=True)
class Quality:
    """A metric of predictive performance; its functions take hypotheses and references.

    `corpus` gives the corpus metric as a function of weights, `sentence_error_percent` the error
    [sentence] that prediction rejection counts; a replaced sentence has error 0.
    """

    name: str
    corpus: Callable[[Texts, Texts], Statistic]
    sentence_error_percent: Callable[[Texts, Texts], FloatArray]
    signature: Callable[[], str]


def _bleu(hypotheses: Texts, references: Texts) -> Statistic:
    return corpus_bleu_statistic(bleu_counts(hypotheses, references))


def _bleu_error(hypotheses: Texts, references: Texts) -> FloatArray:
    return 100 - sentence_bleu(hypotheses, references)


def _wer(hypotheses: Texts, references: Texts) -> Statistic:
    return corpus_wer_statistic(word_error_counts(hypotheses, references))


QUALITIES = {
    one.name: one
    for one in (
        Quality("bleu", _bleu, _bleu_error, bleu_signature),
        Quality("wer_percent", _wer, sentence_wer_percent, wer_signature),
    )
}

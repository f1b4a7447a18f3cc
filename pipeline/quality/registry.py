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
from pipeline.quality.transcripts import AS_DECODED, compared, transcripts_signature
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
    `tokeniser` is that of BLEU, and `transcripts` what WER compares: as_decoded or words.
    """

    sentence_error_percent: Callable[[Texts, Texts], FloatArray]
    sentence_signature: str
    secondary: CorpusMetric
    tokeniser: str | None = None
    transcripts: str | None = None


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


def wer_quality(transcripts: str) -> Quality:
    """WER of texts as decoded or of their words; CER of the same is reported with it."""

    def both(hypotheses: Texts, references: Texts) -> tuple[list[str], list[str]]:
        return compared(hypotheses, transcripts), compared(references, transcripts)

    return Quality(
        "wer_percent",
        lambda *texts: weighted_error_rate(word_error_counts(*both(*texts))),
        lambda: wer_signature(transcripts),
        lambda *texts: sentence_wer_percent(*both(*texts)),
        f"sentence-wer_percent|{transcripts_signature(transcripts)}|norm:{FORM}",
        CorpusMetric(
            "cer_percent",
            lambda *texts: weighted_error_rate(character_error_counts(*both(*texts))),
            lambda: cer_signature(transcripts),
        ),
        transcripts=transcripts,
    )


def quality_metric(name: str, tokeniser: str, transcripts: str) -> Quality:
    """The quality metric of a name in QUALITIES, of BLEU by `tokeniser` or WER by `transcripts`."""
    return bleu_quality(tokeniser) if name == "bleu" else wer_quality(transcripts)


def _chrf(hypotheses: Texts, references: Texts) -> WeightedMetric:
    return weighted_corpus_chrf(chrf_counts(hypotheses, references))


# BLEU with the tokeniser of most languages, WER of texts as decoded.
QUALITIES = {quality.name: quality for quality in (bleu_quality(DEFAULT), wer_quality(AS_DECODED))}

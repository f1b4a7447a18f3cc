"""What training must know of a family of tasks: fairseq's task, and how the dev set is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.fairseq_bridge.configuration import translation_task
from pipeline.fairseq_bridge.job import TrainJob


@dataclass(frozen=True)
class Family:
    """One row of the table below.

    `task`: fairseq's settings of the task of a job. `quality`: a number from hypotheses and
    references [sentence]; it stands in the learning curve in the column `quality_column`.
    """

    task: Callable[[TrainJob], dict[str, Any]]
    quality_column: str
    quality: Callable[[Sequence[str], Sequence[str]], float]


def _translation(job: TrainJob) -> dict[str, Any]:
    return translation_task(job.data, job.source_language, job.target_language)


def _speech(job: TrainJob) -> dict[str, Any]:
    # The module makes its task known to fairseq, so it loads fairseq.
    from pipeline.fairseq_bridge.speech import speech_task

    return speech_task(job)


def _bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU in percent."""
    import sacrebleu

    return float(sacrebleu.corpus_bleu(hypotheses, [references]).score)


def _wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Word error rate of a corpus in percent, as in pipeline.metrics.speech."""
    from rapidfuzz.distance import Levenshtein

    said, meant = ([text.split() for text in texts] for texts in (hypotheses, references))
    edits = sum(map(Levenshtein.distance, said, meant))
    return 100 * edits / max(1, sum(map(len, meant)))


FAMILIES = {
    "translation": Family(_translation, "valid_bleu", _bleu),
    "speech": Family(_speech, "valid_wer_percent", _wer_percent),
}

"""fairseq's configuration of a training job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import MachineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.models.configuration import (
    fairseq_configuration,
    model_configuration,
    translation_task,
)
from pipeline.fairseq_bridge.training.job import TrainJob, process_settings
from pipeline.quality.normalisation import normalised
from pipeline.quality.tokenisers import AUTO, bleu_tokeniser, check_tokeniser


@dataclass(frozen=True)
class Family:
    """The parts of training that differ between families of tasks.

    `task` returns fairseq's task settings of a job. `quality` compares hypotheses with references
    [sentence] in a target language; its value goes to the column `quality_column` of the learning
    curve.
    """

    task: Callable[[TrainJob], dict[str, Any]]
    quality_column: str
    quality: Callable[[Sequence[str], Sequence[str], str], float]


def _translation(job: TrainJob) -> dict[str, Any]:
    if job.train["validate_quality_sentences"]:
        tokeniser = bleu_tokeniser(AUTO, job.target_language)
        check_tokeniser(
            tokeniser, "train.validate_quality_sentences", "set it to 0 to train without dev BLEU"
        )
    return translation_task(job.data, job.source_language, job.target_language)


def _speech(job: TrainJob) -> dict[str, Any]:
    from pipeline.fairseq_bridge.training.speech_task import speech_task  # loads fairseq

    return speech_task(job)


def _bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Corpus BLEU in percent, with the tokeniser of the language."""
    import sacrebleu

    texts = normalised(hypotheses), [normalised(references)]
    tokeniser = bleu_tokeniser(AUTO, language)
    return float(sacrebleu.corpus_bleu(*texts, tokenize=tokeniser).score)


def _wer_percent(hypotheses: Sequence[str], references: Sequence[str], _language: str) -> float:
    """Word error rate of a corpus in percent, defined as in pipeline.quality.speech."""
    import jiwer

    # jiwer splits words at spaces only.
    texts = (
        [" ".join(text.split()) for text in normalised(side)] for side in (references, hypotheses)
    )
    words = jiwer.process_words(*texts)
    edits = words.substitutions + words.insertions + words.deletions
    return float(100 * edits / max(1, words.hits + words.substitutions + words.deletions))


FAMILIES = {
    "translation": Family(_translation, "valid_bleu", _bleu),
    "speech": Family(_speech, "valid_wer_percent", _wer_percent),
}


def training_configuration(job: TrainJob) -> Any:
    """The FairseqConfig of a job.

    Raises ConfigError for a model or a model setting that fairseq does not have, MachineError for
    fp16 without a GPU and if the tokeniser of dev BLEU is missing.
    """
    from pipeline.fairseq_bridge.training.schedules import schedule_settings  # loads fairseq

    train = job.train
    if train["precision"] == "fp16" and not import_fairseq("torch").cuda.is_available():
        raise MachineError(
            "train.precision: fp16 needs a GPU, and this machine has none (got fp16). "
            "Set it to fp32 or bf16."
        )
    return fairseq_configuration(
        task=FAMILIES[job.family].task(job),
        model=model_configuration(job.model["architecture"], job.model["settings"]),
        criterion={
            "_name": "label_smoothed_cross_entropy",
            "label_smoothing": train["label_smoothing"],
        },
        optimizer=_optimizer(train),
        lr_scheduler=schedule_settings(train),
        sections=_sections(job),
    )


def _sections(job: TrainJob) -> dict[str, dict[str, Any]]:
    train = job.train
    return {
        "common": {
            "seed": job.seed,
            "no_progress_bar": True,
            "log_format": "none",
            "fp16": train["precision"] == "fp16",
            "bf16": train["precision"] == "bf16",
        },
        "dataset": {
            "max_tokens": train["batch_tokens"],
            "max_tokens_valid": train["batch_tokens"],
            # With a larger multiple fairseq drops the last sentences of a set.
            "required_batch_size_multiple": 1,
            "num_workers": 0,
            "data_buffer_size": 0,
        },
        "optimization": {
            "max_update": train["updates"],
            "update_freq": [train["accumulate_batches"]],
            "clip_norm": train["clip_norm"],
            "lr": [float(train["learning_rate"])],
        },
        "distributed_training": process_settings(),
        "checkpoint": {"save_dir": str(job.resume)},
    }


def _optimizer(train: Mapping[str, Any]) -> dict[str, Any]:
    settings = {"weight_decay": train["weight_decay"], "lr": [float(train["learning_rate"])]}
    if train["optimizer"] == "adadelta":
        names = ("adadelta_rho", "adadelta_eps")
        return {"_name": "adadelta", **settings, **{name: train[name] for name in names}}
    return {"_name": "adam", **settings, "adam_betas": str(tuple(train["adam_betas"]))}

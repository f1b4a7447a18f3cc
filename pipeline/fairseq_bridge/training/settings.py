"""A member's job as fairseq's configuration."""

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
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.processes import process_settings


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
    from pipeline.fairseq_bridge.training.speech_task import speech_task

    return speech_task(job)


def _bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU in percent."""
    import sacrebleu

    return float(sacrebleu.corpus_bleu(hypotheses, [references]).score)


def _wer_percent(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Word error rate of a corpus in percent, defined as in pipeline.quality.speech."""
    import jiwer

    # jiwer splits words at spaces only.
    texts = ([" ".join(text.split()) for text in side] for side in (references, hypotheses))
    words = jiwer.process_words(*texts)
    edits = words.substitutions + words.insertions + words.deletions
    return float(100 * edits / max(1, words.hits + words.substitutions + words.deletions))


FAMILIES = {
    "translation": Family(_translation, "valid_bleu", _bleu),
    "speech": Family(_speech, "valid_wer_percent", _wer_percent),
}


def training_configuration(job: TrainJob) -> Any:
    """The FairseqConfig of a job.

    Raises ConfigError for a model or a setting of it that fairseq does not have, MachineError where
    fp16 is asked for without a GPU.
    """
    train = job.train
    learning_rate = float(train["learning_rate"])
    has_gpu = import_fairseq("torch").cuda.is_available()
    if train["precision"] == "fp16" and not has_gpu:
        raise MachineError(
            "train.precision must be fp32 or bf16 on a machine without a GPU, got fp16"
        )
    return fairseq_configuration(
        task=FAMILIES[job.family].task(job),
        model=model_configuration(job.model["architecture"], job.model["settings"]),
        criterion={
            "_name": "label_smoothed_cross_entropy",
            "label_smoothing": train["label_smoothing"],
        },
        optimizer=_optimizer(train, learning_rate),
        lr_scheduler=_schedule(train, learning_rate),
        sections=_sections(job, learning_rate),
    )


def _sections(job: TrainJob, learning_rate: float) -> dict[str, dict[str, Any]]:
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
            # fairseq drops the last sentences of a set that no full multiple holds
            "required_batch_size_multiple": 1,
            "num_workers": 0,
            "data_buffer_size": 0,
        },
        "optimization": {
            "max_update": train["updates"],
            "update_freq": [train["accumulate_batches"]],
            "clip_norm": train["clip_norm"],
            "lr": [learning_rate],
        },
        "distributed_training": process_settings(),
        "checkpoint": {"save_dir": str(job.resume)},
    }


def _optimizer(train: Mapping[str, Any], learning_rate: float) -> dict[str, Any]:
    settings: dict[str, Any] = {"weight_decay": train["weight_decay"], "lr": [learning_rate]}
    if train["optimizer"] == "adadelta":
        names = ("adadelta_rho", "adadelta_eps")
        return {"_name": "adadelta", **settings, **{name: train[name] for name in names}}
    return {"_name": "adam", **settings, "adam_betas": str(tuple(train["adam_betas"]))}


def _schedule(train: Mapping[str, Any], learning_rate: float) -> dict[str, Any]:
    warmup, cycles = int(train["warmup_updates"]), int(train["cycles"])
    if train["schedule"] == "cosine":
        import_fairseq("pipeline.fairseq_bridge.training.restarts")  # registers the schedule
        return {
            "_name": "cosine" if cycles == 1 else "cosine_restarts",
            "warmup_updates": warmup,
            "warmup_init_lr": learning_rate / max(1, warmup),
            "lr": [learning_rate],
            "max_update": train["updates"],
            "lr_period_updates": int(train["updates"]) // cycles - warmup,
        }
    if train["schedule"] == "fixed":
        return {"_name": "fixed", "warmup_updates": warmup, "lr": [learning_rate]}
    return {"_name": "inverse_sqrt", "warmup_updates": warmup, "lr": [learning_rate]}

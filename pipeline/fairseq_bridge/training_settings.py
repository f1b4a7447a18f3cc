"""A member's job as fairseq's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import MachineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.configuration import fairseq_configuration, model_configuration
from pipeline.fairseq_bridge.families import FAMILIES
from pipeline.fairseq_bridge.job import TrainJob
from pipeline.fairseq_bridge.processes import process_settings


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
        import_fairseq("pipeline.fairseq_bridge.restarts")  # registers the schedule
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

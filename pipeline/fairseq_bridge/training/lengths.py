"""Check, before training, that sentences are not longer than a batch or the model allow."""

from __future__ import annotations

import logging
from typing import Any

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.training.job import TrainJob, is_first_process

_log = logging.getLogger(__name__)


def check_lengths(trainer: Any, job: TrainJob) -> None:
    """Warn about training pairs that are left out, because they are too long.

    Raises DataError if a sentence of the dev set is too long, or all training pairs. Both name the
    setting, the number of sentences and the longest one; lengths include EOS.
    """
    for reason in _too_long(trainer, job, "valid"):
        raise DataError(f"{job.title}: dev set: {reason} Or shorten the dev set.")
    if job.family == "speech":  # the task of speech counts the utterances that it leaves out
        return
    trainer.task.load_dataset("train")
    for reason in _too_long(trainer, job, "train"):
        if reason.startswith("all "):
            raise DataError(f"{job.title}: training set: {reason}")
        if is_first_process():
            _log.warning("%s: training pairs that are left out: %s", job.title, reason)


def _too_long(trainer: Any, job: TrainJob, split: str) -> list[str]:
    """Return a sentence for each limit that sentences of a set exceed."""
    sizes = trainer.task.dataset(split).sizes  # [sentence, side]; frames for the input of speech
    max_source, max_target = import_fairseq("fairseq.utils").resolve_max_positions(
        trainer.task.max_positions(), trainer.get_model().max_positions()
    )
    batch = sizes[:, 0] if job.family == "speech" else sizes.max(axis=1)
    limits = (
        ("train.batch_tokens", int(job.train["batch_tokens"]), batch),
        ("model.settings.max_source_positions", max_source, sizes[:, 0]),
        ("model.settings.max_target_positions", max_target, sizes[:, 1]),
    )
    reasons = []
    for setting, limit, lengths in limits:
        n_too_long = int((lengths > limit).sum())
        if n_too_long:
            count = "all" if n_too_long == len(lengths) else f"{n_too_long} of"
            reasons.append(
                f"{count} {len(lengths)} sentences are longer than {setting}={limit} (the longest "
                f"has {lengths.max()}). Increase {setting}."
            )
    return reasons

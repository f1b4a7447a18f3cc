"""Saved states of a training, from which it resumes after an interruption."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

from pipeline.errors import MachineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.models.weights import (
    DAMAGE,
    checkpoint_name,
    kept_updates,
    save_weights,
)
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.learning_curve import LearningCurve

_log = logging.getLogger(__name__)
_KEPT_STATES = 2


def save_state(trainer: Any, iterator: Any, curve: LearningCurve, job: TrainJob) -> None:
    """Save the weights of this update if they are kept, and the state to resume from.

    Raises MachineError if they cannot be written, for example because the disk is full.
    """
    torch = import_fairseq("torch")
    update = trainer.get_num_updates()
    if update in kept_updates(job.train):
        save_weights(trainer.get_model().state_dict(), job.resume / checkpoint_name(update))
    state = {
        "model": trainer.get_model().state_dict(),
        "masters": [weights.detach() for weights in _master_weights(trainer)],
        "optimizer": trainer.optimizer.state_dict(),
        "lr_scheduler": trainer.lr_scheduler.state_dict(),
        "updates": update,
        "iterator": iterator.state_dict(),
        "curve": curve.state(),
    }
    path = job.resume / f"state_{update:08d}.pt"
    temporary = path.with_suffix(".writing")
    try:
        torch.save(state, temporary)
    except RuntimeError as error:
        temporary.unlink(missing_ok=True)
        raise MachineError(
            f"{path}: could not be written completely. Check permissions and free disk space; "
            "the next run resumes from the previous state."
        ) from error
    temporary.replace(path)
    for old in sorted(job.resume.glob("state_*.pt"))[:-_KEPT_STATES]:
        old.unlink()


def resumed_iterator(trainer: Any, curve: LearningCurve, job: TrainJob) -> Any:
    """Restore the newest complete state; return an iterator over the remaining batches."""
    torch = import_fairseq("torch")
    for path in sorted(job.resume.glob("state_*.pt"), reverse=True):
        state = _read_state(path, job)
        if state is None:
            continue
        trainer.get_model().load_state_dict(state["model"])
        trainer.optimizer.load_state_dict(state["optimizer"])
        with torch.no_grad():
            for weights, saved in zip(_master_weights(trainer), state["masters"], strict=True):
                weights.copy_(saved)
        trainer.lr_scheduler.load_state_dict(state["lr_scheduler"])
        trainer.set_num_updates(state["updates"])
        # An iterator made for a later epoch would group the sentences into other batches.
        iterator = trainer.get_train_iterator(epoch=1)
        iterator.load_state_dict(state["iterator"])
        curve.restore(state["curve"])
        _log.info("%s: resumes after update %d", job.title, state["updates"])
        return iterator
    return trainer.get_train_iterator(epoch=1)


def _master_weights(trainer: Any) -> list[Any]:
    """The fp32 weights of mixed precision, of which the model holds rounded copies."""
    weights = getattr(trainer.optimizer, "fp32_params", [])
    return list(weights.values() if isinstance(weights, dict) else weights)


def _read_state(path: Path, job: TrainJob) -> dict[str, Any] | None:
    """A state whose checkpoints are undamaged too; None, with a warning, otherwise."""
    import torch
    from safetensors import SafetensorError, safe_open

    damage: tuple[type[Exception], ...] = (pickle.UnpicklingError, SafetensorError, *DAMAGE)
    damaged = path
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        for update in kept_updates(job.train):
            if update <= state["updates"]:
                damaged = job.resume / checkpoint_name(update)
                with safe_open(damaged, "pt"):
                    pass
    except damage as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        _log.warning(
            "%s: %s is damaged; state %s is skipped (%s)",
            job.title, damaged.name, path.name, reason,
        )  # fmt: skip
        return None
    return state

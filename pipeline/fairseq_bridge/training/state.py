"""What an interrupted training leaves, and how the next one goes on from it."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import MachineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.models.weights import DAMAGE, save_weights
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.learning_curve import Curve

_log = logging.getLogger(__name__)
_KEPT_STATES = 2


def kept_weights(folder: Path, train: Mapping[str, Any]) -> dict[int, Path]:
    """Update -> file of the weights that a member keeps, oldest first.

    The last train.keep_checkpoints, and those of the ends of cycles where there are several.
    """
    updates, cycles = int(train["updates"]), int(train["cycles"])
    interval = int(train["checkpoint_interval_updates"])
    saved = [*range(interval, updates, interval), updates]
    last = saved[-int(train["keep_checkpoints"]) :]
    ends = [cycle * updates // cycles for cycle in range(1, cycles)]
    return {one: folder / f"update_{one:08d}.safetensors" for one in sorted({*last, *ends})}


def save_state(trainer: Any, iterator: Any, curve: Curve, job: TrainJob) -> None:
    """The weights of this update where they are kept, and the state from which to go on.

    Raises MachineError where they cannot be written, as on a full disk.
    """
    torch = import_fairseq("torch")
    update = trainer.get_num_updates()
    weights = kept_weights(job.resume, job.train).get(update)
    if weights is not None:
        save_weights(trainer.get_model().state_dict(), weights)
    state = {
        "model": trainer.get_model().state_dict(),
        "masters": [one.detach() for one in _masters(trainer)],
        "optimizer": trainer.optimizer.state_dict(),
        "lr_scheduler": trainer.lr_scheduler.state_dict(),
        "updates": update,
        "iterator": iterator.state_dict(),
        "curve": curve.state(),
    }
    path = job.resume / f"state_{update:08d}.pt"
    writing = path.with_suffix(".writing")
    try:
        torch.save(state, writing)
    except RuntimeError as error:
        writing.unlink(missing_ok=True)
        raise MachineError(
            f"{path} must be writable and have room, a part of it could not be written: "
            f"the next run goes on from the state before"
        ) from error
    writing.replace(path)
    for old in sorted(job.resume.glob("state_*.pt"))[:-_KEPT_STATES]:
        old.unlink()


def resumed_iterator(trainer: Any, curve: Curve, job: TrainJob) -> Any:
    """The iterator over training batches, moved to where the newest whole state left off."""
    torch = import_fairseq("torch")
    for path in sorted(job.resume.glob("state_*.pt"), reverse=True):
        state = _whole_state(path, job)
        if state is None:
            continue
        trainer.get_model().load_state_dict(state["model"])
        trainer.optimizer.load_state_dict(state["optimizer"])
        with torch.no_grad():
            for master, saved in zip(_masters(trainer), state["masters"], strict=True):
                master.copy_(saved)
        trainer.lr_scheduler.load_state_dict(state["lr_scheduler"])
        trainer.set_num_updates(state["updates"])
        # An iterator made for a later epoch would group the sentences into other batches.
        iterator = trainer.get_train_iterator(epoch=1)
        iterator.load_state_dict(state["iterator"])
        curve.restore(state["curve"])
        _log.info("%s: goes on after update %d", job.title, state["updates"])
        return iterator
    return trainer.get_train_iterator(epoch=1)


def _masters(trainer: Any) -> list[Any]:
    """The fp32 weights that mixed precision updates, of which the model holds rounded copies."""
    masters = getattr(trainer.optimizer, "fp32_params", [])
    return list(masters.values() if isinstance(masters, dict) else masters)


def _whole_state(path: Path, job: TrainJob) -> dict[str, Any] | None:
    """A state whose kept weights are whole too; None, with a sentence, where one is not."""
    import torch
    from safetensors import SafetensorError, safe_open

    damage: tuple[type[Exception], ...] = (pickle.UnpicklingError, SafetensorError, *DAMAGE)
    damaged = path
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        for update, weights in kept_weights(job.resume, job.train).items():
            if update <= state["updates"]:
                damaged = weights
                with safe_open(weights, "pt"):
                    pass
    except damage as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        passed_over = "it" if damaged == path else path.name
        _log.warning(
            "%s: %s is not whole, and %s is passed over: %s",
            job.title, damaged.name, passed_over, reason,
        )  # fmt: skip
        return None
    return state

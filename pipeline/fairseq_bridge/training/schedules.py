"""Learning-rate schedules: settings for fairseq's own, and a cosine schedule with warm restarts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pipeline.fairseq_bridge import import_fairseq

_cosine: Any = import_fairseq("fairseq.optim.lr_scheduler.cosine_lr_scheduler")
_register: Any = import_fairseq("fairseq.optim.lr_scheduler").register_lr_scheduler


def schedule_settings(train: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of fairseq's schedule for the settings of group `train`."""
    warmup, cycles = int(train["warmup_updates"]), int(train["cycles"])
    peak = float(train["learning_rate"])
    if train["schedule"] == "cosine":
        return {
            "_name": "cosine" if cycles == 1 else "cosine_restarts",
            "warmup_updates": warmup,
            "warmup_init_lr": peak / max(1, warmup),
            "lr": [peak],
            "max_update": train["updates"],
            "lr_period_updates": int(train["updates"]) // cycles - warmup,
        }
    return {"_name": train["schedule"], "warmup_updates": warmup, "lr": [peak]}


@_register("cosine_restarts", dataclass=_cosine.CosineLRScheduleConfig)
class CosineRestarts(_cosine.CosineLRSchedule):  # type: ignore[misc]
    """Cycles of equal length, each from the peak to zero, for snapshot ensembles.

    A cycle has `warmup_updates` + `lr_period_updates` updates; the warm-up is part of the first.
    fairseq's own restarts put the warm-up before the first cycle, so that the cycles would not
    divide the training evenly.
    """

    def step_update(self, num_updates: int) -> float:
        """Set and return the learning rate of the update after `num_updates`."""
        cycle = self.cfg.warmup_updates + self.period
        if num_updates < cycle:
            return float(super().step_update(num_updates))
        done = num_updates % cycle / cycle
        self.lr = 0.5 * self.max_lr * (1 + math.cos(math.pi * done))
        self.optimizer.set_lr(self.lr)
        return float(self.lr)

"""fairseq's cosine schedule with warm restarts, for snapshot ensembles."""

from __future__ import annotations

import math
from typing import Any

from pipeline.fairseq_bridge import import_fairseq

_cosine: Any = import_fairseq("fairseq.optim.lr_scheduler.cosine_lr_scheduler")
_register: Any = import_fairseq("fairseq.optim.lr_scheduler").register_lr_scheduler


@_register("cosine_restarts", dataclass=_cosine.CosineLRScheduleConfig)
class CosineRestarts(_cosine.CosineLRSchedule):  # type: ignore[misc]
    """Cycles of equal length, each from the peak to zero; the warm-up stands inside the first.

    A cycle has `warmup_updates` and `lr_period_updates` updates. fairseq's own restarts would put
    the warm-up before the first cycle, so that the cycles would not divide the training evenly.
    """

    def step_update(self, num_updates: int) -> float:
        """Set and return the learning rate of the update that follows `num_updates`."""
        cycle = self.cfg.warmup_updates + self.period
        if num_updates < cycle:
            return float(super().step_update(num_updates))
        done = num_updates % cycle / cycle
        self.lr = 0.5 * self.max_lr * (1 + math.cos(math.pi * done))
        self.optimizer.set_lr(self.lr)
        return float(self.lr)

"""What a benchmark reports, and how two ways of doing one thing are timed side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """One number; `target` is ">= x" or "<= x" in the same unit, or empty where there is none."""

    name: str
    value: float
    unit: str
    target: str = ""

    @property
    def ok(self) -> bool:
        """Whether the target is met."""
        if not self.target:
            return True
        relation, _, bound = self.target.partition(" ")
        return self.value >= float(bound) if relation == ">=" else self.value <= float(bound)


def alternating_seconds(*ways: Callable[[], object], repeats: int = 5) -> list[float]:
    """Median seconds of each way, run in turn so that a noisy machine disturbs all alike."""
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, taken in zip(ways, seconds, strict=True):
            start = time.perf_counter()
            way()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]

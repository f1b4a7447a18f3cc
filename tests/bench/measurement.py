"""What a benchmark reports, and how two ways of doing one thing are timed side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


class NotMeasuredError(Exception):
    """A part has nothing to measure; the message says what is missing and how to get it."""


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


def alternating_seconds(
    *ways: Callable[[], object],
    repeats: int = 5,
    clock: Callable[[], float] = time.process_time,
) -> list[float]:
    """Median seconds of each way, run in turn so that a noisy machine disturbs all alike.

    By default the processor's seconds of this process; `time.perf_counter` for what waits for files
    or other processes.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, taken in zip(ways, seconds, strict=True):
            start = clock()
            way()
            taken.append(clock() - start)
    return [statistics.median(taken) for taken in seconds]

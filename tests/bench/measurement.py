"""Measurements of benchmarks, and the timing of several implementations in alternation."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


class NotMeasuredError(Exception):
    """A part cannot be measured. The message says what is missing and how to get it."""


@dataclass(frozen=True)
class Measurement:
    """One number. `target` is ">= x" or "<= x" in the same unit, or empty if there is none."""

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
    """Return the median seconds of each implementation, alternating to share the machine's noise.

    The default clock is the CPU time of this process. Use `time.perf_counter` for work that waits
    for files or other processes.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, taken in zip(ways, seconds, strict=True):
            start = clock()
            way()
            taken.append(clock() - start)
    return [statistics.median(taken) for taken in seconds]

"""Rejection ratios at the size of the paper, and the intervals of all tables of the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipeline.errors import DataError
from pipeline.metrics import prediction_rejection_ratio
from pipeline.run.settings import ROOT
from tests.bench.measurement import Measurement

N_MEASURE, N_TEMPERATURE, N_SENTENCE = 17, 50, 14_760
RESAMPLES = 1000
_READ = ("prepare", "decode", "uncertainty")


def measure() -> list[Measurement]:
    """Measure many exact ratios, the metrics stage on a demo run, and its intervals."""
    ratios = f"PRR of {N_MEASURE} measures x {N_TEMPERATURE} temperatures, N = {N_SENTENCE}"
    tasks = _tasks()
    with_intervals, without = (
        sum(_stage_seconds(task, resamples) for task in tasks) for resamples in (RESAMPLES, 0)
    )
    names = ", ".join(tasks)
    return [
        Measurement(ratios, _rejection_seconds(), "s", "<= 10"),
        Measurement(
            f"all intervals of {names}: {RESAMPLES} resamples minus none",
            with_intervals - without,
            "s",
            "<= 60",
        ),
        Measurement(f"metrics of {names} without figures", with_intervals, "s"),
    ]


def _rejection_seconds() -> float:
    """Return the seconds for ranking the same errors by many different measures."""
    random = np.random.default_rng(0)
    error = random.uniform(0, 100, N_SENTENCE)
    base = random.normal(size=(N_MEASURE, N_SENTENCE))
    temperatures = np.linspace(0.1, 10, N_TEMPERATURE)
    prediction_rejection_ratio(error, base[0])  # compiles
    start = time.process_time()
    for measure in base:
        for temperature in temperatures:
            prediction_rejection_ratio(error, measure + temperature * base[0])
    return time.process_time() - start


def _tasks() -> list[str]:
    """Return the tasks that have measures on disk. Raises DataError if there are none."""
    folder = ROOT / "outputs" / "uncertainty"
    tasks = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not tasks:
        raise DataError(f"{folder}: no measures of a demo run. Run make repro first.")
    return tasks


def _stage_seconds(task: str, resamples: int) -> float:
    """Return the CPU seconds of the stage on the demo's results, with output to another folder."""
    with TemporaryDirectory() as root:
        for name in _READ:
            (Path(root) / name).symlink_to(ROOT / "outputs" / name)
        settings = [f"task={task}", "experiment=demo", f"io.root={root}", "tracking=off"]
        settings += [f"metrics.resamples={resamples}", "~report.figures", "+report.figures={}"]
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "stages.metrics", *settings],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        after = os.times()
        return (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )

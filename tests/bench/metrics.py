"""Rejection ratios, X-BLEU of many systems, and the intervals of all tables of the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipeline.metrics import prediction_rejection_ratio
from pipeline.run.settings import ROOT
from pipeline.uncertainty.heuristics import xbleu
from tests.bench.measurement import Measurement

N_MEASURE, N_TEMPERATURE, N_SENTENCE = 17, 50, 14_760
N_SYSTEM, N_TEXT, N_WORD, N_WORD_PER_SENTENCE = 16, 3004, 8000, 22
RESAMPLES = 1000
_READ = ("prepare", "decode", "uncertainty")


def measure() -> list[Measurement]:
    """Measure many exact ratios, X-BLEU, and the metrics stage on a demo run if there is one."""
    ratios = f"PRR of {N_MEASURE} measures x {N_TEMPERATURE} temperatures, N = {N_SENTENCE}"
    texts = f"X-BLEU of {N_SYSTEM} SYNTHETIC systems x {N_TEXT} sentences"
    measurements = [
        Measurement(ratios, _rejection_seconds(), "s", "<= 10"),
        Measurement(texts, _xbleu_seconds(), "s", "<= 30"),
    ]
    tasks = _tasks()
    if not tasks:
        print(
            "metrics      intervals not measured: no measures of a demo run. Run make repro first."
        )
        return measurements
    with_intervals, without = (
        sum(_stage_seconds(task, resamples) for task in tasks) for resamples in (RESAMPLES, 0)
    )
    names = ", ".join(tasks)
    return [
        *measurements,
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


def _xbleu_seconds() -> float:
    """Return the seconds for noisy copies of made-up sentences, of the length of news."""
    random = np.random.default_rng(0)
    frequency = 1 / np.arange(1, N_WORD + 1)
    frequency /= frequency.sum()
    sentences = [
        random.choice(N_WORD, size=1 + random.poisson(N_WORD_PER_SENTENCE), p=frequency)
        for _ in range(N_TEXT)
    ]
    texts = {
        f"system {index}": [_noisy_copy(random, words) for words in sentences]
        for index in range(N_SYSTEM)
    }
    start = time.process_time()
    xbleu(texts)
    return time.process_time() - start


def _noisy_copy(random: np.random.Generator, words: np.ndarray) -> str:
    """Return a text in which a fifth of the words are replaced and some left out or doubled."""
    replaced = np.where(
        random.random(len(words)) < 0.2, random.integers(N_WORD, size=len(words)), words
    )
    times = random.choice([0, 1, 2], size=len(words), p=[0.05, 0.9, 0.05])
    return " ".join(f"word{word}" for word in np.repeat(replaced, times)) + "."


def _tasks() -> list[str]:
    """Return the tasks that have measures on disk."""
    folder = ROOT / "outputs" / "uncertainty"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


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

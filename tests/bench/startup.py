"""How long a stage takes to start: until its help is printed, and until it composes settings."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from tempfile import TemporaryDirectory

from pipeline.run.settings import ROOT
from tests.bench.measurement import Measurement, alternating_seconds

STAGES = (
    *("compose", "prepare", "train", "decode", "uncertainty", "metrics", "tables"),
    *("sweep", "plan"),
)
TARGET = "<= 5"
N_HEAVIEST = 3
_IMPORT = re.compile(r"import time: +(\d+) \| +\d+ \| +([^.\s]+)")


def measure() -> list[Measurement]:
    """Seconds to the help of each stage, and of one run of compose; the heaviest imports."""
    with TemporaryDirectory() as root:
        helps = [lambda stage=stage: _run("-m", f"stages.{stage}", "--help") for stage in STAGES]
        *seconds, composed = alternating_seconds(
            *helps,
            lambda: _run("-m", "stages.compose", f"io.root={root}"),
            clock=time.perf_counter,
        )
    measurements = []
    for stage, taken in zip(STAGES, seconds, strict=True):
        measurements.append(Measurement(f"{stage} --help", taken, "s", TARGET))
        measurements += _heaviest_imports(stage)
    return [*measurements, Measurement("compose, whole run", composed, "s", TARGET)]


def _heaviest_imports(stage: str) -> list[Measurement]:
    """Seconds in the modules of a package that `-X importtime` counts, without what they import."""
    report = _run("-X", "importtime", "-m", f"stages.{stage}", "--help")
    package_microseconds: Counter[str] = Counter()
    for microseconds, package in _IMPORT.findall(report):
        package_microseconds[package] += int(microseconds)
    return [
        Measurement(f"{stage} --help, modules of {package}", microseconds / 1e6, "s")
        for package, microseconds in package_microseconds.most_common(N_HEAVIEST)
    ]


def _run(*arguments: str) -> str:
    """What Python says on stderr when it is run with these arguments."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stderr

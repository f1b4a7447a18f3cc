"""Start-up time of the stages: until the help is printed, and for composing the settings."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from tempfile import TemporaryDirectory

from pipeline.run.settings import ROOT
from stages.__main__ import STAGES
from tests.bench.measurement import Measurement, alternating_seconds

TARGET = "<= 5"
N_HEAVIEST = 3
_IMPORT = re.compile(r"import time: +(\d+) \| +\d+ \| +([^.\s]+)")


def measure() -> list[Measurement]:
    """Measure --help of each stage, one run of compose, and the slowest imports."""
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
    return [*measurements, Measurement("compose, complete run", composed, "s", TARGET)]


def _heaviest_imports(stage: str) -> list[Measurement]:
    """Return the import time of each package according to `-X importtime`, without its imports."""
    report = _run("-X", "importtime", "-m", f"stages.{stage}", "--help")
    package_microseconds: Counter[str] = Counter()
    for microseconds, package in _IMPORT.findall(report):
        package_microseconds[package] += int(microseconds)
    return [
        Measurement(f"{stage} --help, modules of {package}", microseconds / 1e6, "s")
        for package, microseconds in package_microseconds.most_common(N_HEAVIEST)
    ]


def _run(*arguments: str) -> str:
    """Run Python with these arguments and return its stderr."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stderr

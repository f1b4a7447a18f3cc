"""How long a stage takes to start: until its help is printed, and until it composes settings."""

from __future__ import annotations

import subprocess
import sys
import time
from tempfile import TemporaryDirectory

from pipeline.config import ROOT
from tests.bench.measurement import Measurement, alternating_seconds

STAGES = ("compose", "prepare", "train", "decode", "uncertainty", "metrics", "tables")
TARGET = "<= 5"


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=True, capture_output=True)


def measure() -> list[Measurement]:
    """Seconds to the help of each stage, and of one run of compose."""
    with TemporaryDirectory() as root:
        helps = [lambda stage=stage: _run(f"stages.{stage}", "--help") for stage in STAGES]
        *seconds, composed = alternating_seconds(
            *helps,
            lambda: _run("stages.compose", f"io.root={root}"),
            clock=time.perf_counter,
        )
    measurements = [
        Measurement(f"{stage} --help", taken, "s", TARGET)
        for stage, taken in zip(STAGES, seconds, strict=True)
    ]
    return [*measurements, Measurement("compose, whole run", composed, "s", TARGET)]

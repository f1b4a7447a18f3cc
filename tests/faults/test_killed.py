"""kill -9 at any moment, then the stage again: the bytes of an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import OUTS, STAGES, SmallRun, wait_until


def kill_at(seconds: float, stage: str, run: SmallRun) -> None:
    """Start a stage and kill it after so long, sooner where it has ended by then."""
    while True:
        with run.started(stage) as process:
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                return
        for out in OUTS[stage]:
            shutil.rmtree(run.root / out)
        seconds *= 0.8


def kill_before(file: int, stage: str, run: SmallRun) -> None:
    """Start a stage and kill it when it has made a file and not yet put it in place."""
    with run.started(stage, held_before=file) as process:
        wait_until(lambda: run.placed() >= file, process)


def made_after_kill(
    stage: str, moment: int, undisturbed: Undisturbed, folder: Path
) -> Mapping[str, str]:
    """What a stage leaves that was killed at a seeded moment and run again, in another folder."""
    run = undisturbed.run.before(stage, folder)
    seeded = random.Random(f"{stage} {moment}")
    if moment % 2:
        kill_before(seeded.randint(1, undisturbed.files[stage]), stage, run)
    else:
        kill_at(seeded.uniform(0, undisturbed.seconds[stage]), stage, run)
    run.finish(stage)
    return run.made(stage)


@pytest.mark.parametrize("stage", STAGES)
def test_case_16_killed_stage_made_again_elsewhere_is_the_same(
    stage: str, moments: int, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        trials = {
            moment: cores.submit(
                made_after_kill, stage, moment, undisturbed, tmp_path / f"out {moment}: 日本"
            )
            for moment in range(moments)
        }
    whole = undisturbed.run.made(stage)
    for moment, trial in trials.items():
        assert trial.result() == whole, f"killed at moment {moment}"

"""A stage killed by SIGKILL at any moment and run again gives the bytes of an undisturbed run."""

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
    """Start a stage and kill it after `seconds`; if it ends earlier, try again with less time."""
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
    """Start a stage and kill it when it has written file number `file` but not moved it."""
    with run.started(stage, held_before=file) as process:
        wait_until(lambda: run.files_moved() >= file, process)


def digests_after_kill(
    stage: str, moment: int, undisturbed: Undisturbed, folder: Path
) -> Mapping[str, str]:
    """Kill a stage at a seeded moment, run it again and return the digests of its files."""
    run = undisturbed.run.copy_before(stage, folder)
    seeded = random.Random(f"{stage} {moment}")
    if moment % 2:
        kill_before(seeded.randint(1, undisturbed.files[stage]), stage, run)
    else:
        kill_at(seeded.uniform(0, undisturbed.seconds[stage]), stage, run)
    run.finish(stage)
    return run.digests(stage)


@pytest.mark.parametrize("stage", STAGES)
def test_case_16_killed_stage_run_again_in_another_folder_gives_the_same_files(
    stage: str, moments: int, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        trials = {
            moment: executor.submit(
                digests_after_kill, stage, moment, undisturbed, tmp_path / f"out {moment}: 日本"
            )
            for moment in range(moments)
        }
    complete = undisturbed.run.digests(stage)
    for moment, trial in trials.items():
        assert trial.result() == complete, f"killed at moment {moment}"

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
from tests.faults.small_run import STAGES, kill


def made_after_kill(
    stage: str, moment: int, undisturbed: Undisturbed, folder: Path
) -> Mapping[str, str]:
    """What a stage leaves that was killed at a seeded moment and run again, in another folder."""
    after_seconds = random.Random(f"{stage} {moment}").uniform(0, undisturbed.seconds[stage])
    while True:
        run = undisturbed.run.before(stage, folder)
        process = run.start(stage)
        try:
            process.communicate(timeout=after_seconds)
        except subprocess.TimeoutExpired:
            kill(process)
            break
        after_seconds *= 0.8  # this run was faster than the undisturbed one
        shutil.rmtree(run.root)
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

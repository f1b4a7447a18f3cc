"""kill -9 at any moment, then the stage again: the bytes of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import STAGES, kill


@pytest.mark.parametrize("stage", STAGES)
def test_case_16_killed_stage_made_again_elsewhere_is_the_same(
    stage: str, moment: int, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    after_seconds = random.Random(f"{stage} {moment}").uniform(0, undisturbed.seconds[stage])
    while True:
        run = undisturbed.run.before(stage, tmp_path / "out: 日本")
        process = run.start(stage)
        try:
            process.communicate(timeout=after_seconds)
        except subprocess.TimeoutExpired:
            kill(process)
            break
        after_seconds *= 0.8  # this run was faster than the undisturbed one
        shutil.rmtree(run.root)
    run.finish(stage)
    assert run.made(stage) == undisturbed.run.made(stage)

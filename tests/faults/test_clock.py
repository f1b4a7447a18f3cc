"""A clock that runs backwards and files dated in the future change no result."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.conftest import Undisturbed

# Python imports this at startup: each reading of the clock is an hour before the previous one.
_BACKWARDS = """
import itertools, time
readings, now, now_ns = itertools.count(), time.time, time.time_ns
time.time = lambda: now() - 3600 * next(readings)
time.time_ns = lambda: now_ns() - 3600 * 10**9 * next(readings)
"""
_START_OF_2100_SECONDS = 4102444800


def test_clock_that_runs_backwards_changes_no_result(
    any_stage: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.copy_before(any_stage, tmp_path / "outputs")
    for path in run.root.rglob("*"):
        os.utime(path, (_START_OF_2100_SECONDS, _START_OF_2100_SECONDS))
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(_BACKWARDS)
    with run.started(any_stage, path=tmp_path / "clock") as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out[-2000:] + err[-4000:]
    assert run.digests(any_stage) == undisturbed.run.digests(any_stage)

"""A clock that jumps, and files that come from the future, change no result."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.conftest import Undisturbed

# Python runs this at its start: every look at the clock tells an hour less than the one before.
_BACKWARDS = """
import itertools, time
looks, now, now_ns = itertools.count(), time.time, time.time_ns
time.time = lambda: now() - 3600 * next(looks)
time.time_ns = lambda: now_ns() - 3600 * 10**9 * next(looks)
"""
_YEARS_2100_SECONDS = 4102444800


def test_clock_that_goes_backwards(
    any_stage: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.before(any_stage, tmp_path / "outputs")
    for path in run.root.rglob("*"):
        os.utime(path, (_YEARS_2100_SECONDS, _YEARS_2100_SECONDS))
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(_BACKWARDS)
    with run.started(any_stage, path=tmp_path / "clock") as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out[-2000:] + err[-4000:]
    assert run.made(any_stage) == undisturbed.run.made(any_stage)

"""One run at a time: who waits, who is refused."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import IO

import pytest

from pipeline.errors import PipelineError
from pipeline.run.locks import only_run


def _wait(lock: Path) -> None:
    with only_run(lock, "work", wait=True):
        lock.with_name("went_in").touch()


def test_second_is_refused_and_the_lock_falls_at_the_end(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "work"
    with only_run(lock, "work", wait=False):
        named = rf"one run of work at a time may write here, and process {os.getpid()} does"
        with pytest.raises(PipelineError, match=named), only_run(lock, "work", wait=False):
            pass
    with only_run(lock, "work", wait=False):
        pass


def test_a_lock_that_its_holder_took_away_guards_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "work"

    def held_until_gone(file: IO[str], how: int) -> None:
        lock.unlink()

    monkeypatch.setattr("fcntl.flock", held_until_gone)
    ended = "one run of work has just ended here: start again"
    with pytest.raises(PipelineError, match=ended), only_run(lock, "work", wait=False):
        pass


def test_a_job_waits(tmp_path: Path) -> None:
    lock = tmp_path / "work"
    with only_run(lock, "work", wait=False):
        job = multiprocessing.get_context("spawn").Process(target=_wait, args=(lock,))
        job.start()
        job.join(1)
        assert job.is_alive()
        assert not (tmp_path / "went_in").exists()
    job.join(60)
    assert (tmp_path / "went_in").exists()

"""Locks between runs: which runs wait, which are refused, and what remains afterwards."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.run.locks import exclusive_lock

pytestmark = pytest.mark.process


def _hold(lock: Path) -> None:
    with exclusive_lock(lock, "work", wait=True):
        lock.with_name("entered").touch()
        signal.pause()


def _enter(lock: Path) -> None:
    with exclusive_lock(lock, "work", wait=True):
        lock.with_name("entered").touch()


def test_second_run_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "work"
    with exclusive_lock(lock, "work", wait=False):
        holder = rf"locks/work: locked by another run of work \(process {os.getpid()}\)\. Wait"
        with pytest.raises(PipelineError, match=holder), exclusive_lock(lock, "work", wait=False):
            pass
    with exclusive_lock(lock, "work", wait=False):
        pass


def test_lock_can_be_taken_again_after_its_folder_was_removed(
    tmp_path: Path,
) -> None:
    lock = tmp_path / "hidden" / "lock"
    for _ in range(2):
        with exclusive_lock(lock, "work", wait=False):
            shutil.rmtree(lock.parent)


def test_job_waits_for_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "work"
    with exclusive_lock(lock, "work", wait=False):
        job = multiprocessing.get_context("spawn").Process(target=_enter, args=(lock,))
        job.start()
        job.join(1)
        assert job.is_alive()
        assert not (tmp_path / "entered").exists()
    job.join(60)
    assert (tmp_path / "entered").exists()


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "work"
    job = multiprocessing.get_context("spawn").Process(target=_hold, args=(lock,))
    job.start()
    while not (tmp_path / "entered").exists():
        job.join(0.05)
        assert job.is_alive()
    named = rf"process {job.pid}"
    with pytest.raises(PipelineError, match=named), exclusive_lock(lock, "work", wait=False):
        pass
    job.kill()
    job.join()
    with exclusive_lock(lock, "work", wait=False):
        pass

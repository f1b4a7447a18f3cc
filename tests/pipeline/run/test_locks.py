"""Locks between runs: which runs wait, which are refused, and what remains afterwards."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.run.locks import exclusive_lock, lock_holder

pytestmark = pytest.mark.slow


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


def test_holder_that_has_not_written_its_number_yet_is_described(tmp_path: Path) -> None:
    lock = tmp_path / "work"
    with exclusive_lock(lock, "work", wait=False):
        lock.write_text("")
        refused = r"another run of work \(a process that is just starting or finishing\)"
        with pytest.raises(PipelineError, match=refused), exclusive_lock(lock, "work", wait=False):
            pass


@pytest.fixture(params=[errno.ENOLCK, errno.ENOSYS])
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def flock(*_: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr("fcntl.flock", flock)
    return os.strerror(request.param)


def test_file_system_without_locks_gets_a_lock_that_names_process_and_host(
    without_locks: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lock, held = tmp_path / "locks" / "work", tmp_path / "locks" / "work.held"
    with exclusive_lock(lock, "work", wait=False):
        (warning,) = caplog.messages
        expected = f"this file system has no locks ({without_locks}), so {held} is the lock of work"
        assert expected in warning
        named = rf"process {os.getpid()} on host {socket.gethostname()}\).*remove {held}\."
        with pytest.raises(PipelineError, match=named), exclusive_lock(lock, "work", wait=False):
            pass
    assert not held.exists()
    with exclusive_lock(lock, "work", wait=False):
        assert held.exists()
        assert lock_holder(lock) == f"process {os.getpid()} on host {socket.gethostname()}"
    assert lock_holder(lock) is None


def test_lock_without_locks_of_a_killed_process_of_this_host_is_free(
    without_locks: str, tmp_path: Path
) -> None:
    job = multiprocessing.get_context("spawn").Process(target=os.getpid)
    job.start()
    job.join()
    held = tmp_path / "work.held"
    held.write_text(f"{job.pid}\n{socket.gethostname()}\n1\n")
    with exclusive_lock(tmp_path / "work", "work", wait=False):
        assert held.read_text().split("\n")[0] == str(os.getpid())
    held.write_text(f"{job.pid}\nanother-host\n1\n")
    refused = rf"process {job.pid} on host another-host\).*If that process has ended, remove {held}"
    with (
        pytest.raises(PipelineError, match=refused),
        exclusive_lock(tmp_path / "work", "work", wait=False),
    ):
        pass

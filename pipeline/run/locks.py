"""File locks between processes: one run at a time writes to a folder of results."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from pipeline.errors import PipelineError

_log = logging.getLogger(__name__)
_QUIET_SECONDS = 2.0
# What a file system without locks answers, such as the NFS of some clusters.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def exclusive_lock(path: Path, work: str, *, wait: bool) -> Iterator[None]:
    """Hold the lock file `path` while `work` is done.

    The operating system releases the lock when the process that holds it ends, however it ends.
    The file stays and names the last holder. If another process holds the lock, wait for it or
    raise PipelineError naming that process.

    On a file system without locks, a file beside it that names process and host is the lock, and a
    warning says so. It is removed at the end; one that a killed process left is removed on its own
    host, while on another host the error says which file to remove.
    """
    lock: BaseFileLock = FileLock(path, on_acquired=_write_process_id)  # makes the folder as well
    try:
        _acquire(lock, work, wait)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
        lock = SoftFileLock(_held(path))
        _log.warning(
            "%s: this file system has no locks (%s), so %s is the lock of %s. If a run on another "
            "host is killed, remove that file.",
            path.parent,
            os.strerror(error.errno),
            lock.lock_file,
            work,
        )
        _acquire(lock, work, wait)
    try:
        yield
    finally:
        lock.release()


def lock_holder(path: Path) -> str | None:
    """Return which process holds the lock file `path` of `exclusive_lock`; None if none does."""
    held = _held(path)
    if held.exists():
        return _holder(held)
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(path)
    except OSError:  # no such file, or no locks
        pass
    return None


def _held(path: Path) -> Path:
    """The file that is the lock where the file system has none."""
    return path.with_name(f"{path.name}.held")


def _acquire(lock: BaseFileLock, work: str, wait: bool) -> None:
    try:
        lock.acquire(timeout=_QUIET_SECONDS if wait else 0)
    except Timeout:
        path = Path(lock.lock_file)
        holder = _holder(path)
        if not wait:
            raise PipelineError(
                f"{path}: locked by another run of {work} ({holder}). "
                f"Wait for it to finish, then run again.{_hint_of_host(path)}"
            ) from None
        _log.info("%s: waiting for %s, which holds %s.%s", work, holder, path, _hint_of_host(path))
        lock.acquire()


def _write_process_id(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())


def _lines(path: Path) -> list[str]:
    """The process id in a lock file and, without locks of the file system, the host."""
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return [""]


def _holder(path: Path) -> str:
    process, *rest = _lines(path)
    if not process:  # it has not written its number yet, or has removed the file
        return "a process that is just starting or finishing"
    return f"process {process}" + (f" on host {rest[0]}" if rest else "")


def _hint_of_host(path: Path) -> str:
    _, *rest = _lines(path)
    return f" If that process has ended, remove {path}." if rest else ""

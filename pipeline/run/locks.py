"""File locks between processes: one run at a time writes to a folder of results."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.errors import PipelineError

_log = logging.getLogger(__name__)
_QUIET_SECONDS = 2.0


@contextmanager
def exclusive_lock(path: Path, work: str, *, wait: bool) -> Iterator[None]:
    """Hold the lock file `path` while `work` is done.

    The operating system releases the lock when the process that holds it ends, however it ends.
    The file stays and names the last holder. If another process holds the lock, wait for it or
    raise PipelineError naming that process.
    """
    lock = FileLock(path, on_acquired=_write_process_id)  # makes the folder as well
    try:
        lock.acquire(timeout=_QUIET_SECONDS if wait else 0)
    except Timeout:
        holder = _holder(path)
        if not wait:
            raise PipelineError(
                f"{path}: locked by another run of {work} ({holder}). "
                "Wait for it to finish, then run again."
            ) from None
        _log.warning("%s: waiting for %s, which holds %s", work, holder, path)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _write_process_id(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())


def _holder(path: Path) -> str:
    try:
        return f"process {path.read_text(encoding='utf-8')}"
    except FileNotFoundError:
        return "a process that is just finishing"

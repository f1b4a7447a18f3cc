"""One run at a time writes to a folder of results."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import PipelineError

_log = logging.getLogger(__name__)


@contextmanager
def only_run(lock: Path, work: str, *, wait: bool) -> Iterator[None]:
    """Hold a lock while `work` is done; it falls with the process that holds it.

    Where another process holds it: wait for that one, or raise PipelineError naming it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            if not wait:
                raise PipelineError(
                    f"one run of {work} at a time may write here, and process {holder} does: "
                    f"wait for it ({lock})"
                ) from None
            _log.warning("%s: waiting for process %s, which writes here", work, holder)
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink == 0:  # whoever held it took it away at its end
            raise PipelineError(f"one run of {work} has just ended here: start again ({lock})")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield

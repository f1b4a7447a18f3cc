"""Looking at a file in a process that it may crash: HDF5 trusts what a file says of its layout."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pipeline.errors import MachineError

# Exit codes of a process that a file brought down.
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE}
_STDOUT, _STDERR = 1, 2


def in_child(look: Callable[[Path], list[str]], path: Path) -> list[str]:
    """What `look` says of a file, looking in a fork of this process: milliseconds, not a start.

    A file that ends that process is one sentence. Raises MachineError where the look itself fails,
    for want of memory for one.
    """
    answer, answering = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads beside a fork; this child waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer_and_end(look, path, answering)
    os.close(answering)
    try:
        with os.fdopen(answer, encoding="utf-8") as pipe:
            text = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        faults: list[str] = json.loads(text)
        return faults
    if code in _CRASHES:
        reason = signal.Signals(-code).name
        return [f"{path} must be whole and sound HDF5, got a file that ends its reader: {reason}"]
    raise MachineError(f"{path} could not be checked: {text or f'exit code {code}'}")


def _answer_and_end(look: Callable[[Path], list[str]], path: Path, answering: int) -> NoReturn:
    """What the child does; a crash of it prints nothing and dumps no memory."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, _STDOUT)
        os.dup2(nowhere, _STDERR)
        with os.fdopen(answering, "w", encoding="utf-8") as pipe:
            try:
                pipe.write(json.dumps(look(path)))
                code = 0
            except BaseException as error:  # noqa: BLE001 - the parent raises it
                pipe.write(f"{type(error).__name__} {error}")
    finally:
        os._exit(code)

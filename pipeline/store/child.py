"""Check files in a forked process, because HDF5 trusts a file's own layout and may crash on it."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from pipeline.errors import MachineError

# Exit codes of a process that crashed on a file.
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE}
_STDOUT, _STDERR = 1, 2


def in_child(check: Callable[[Path], list[str]], paths: Sequence[Path]) -> list[list[str]]:
    """Return the faults that `check` finds in each file, checking in a fork of this process.

    A fork takes milliseconds; a new process would have to import everything. If the child crashes
    on the first file that it checks, the crash is reported as a fault of that file. If it crashes
    on a later file, another child checks that file again and continues from there. Raises
    MachineError if the check itself fails, for example because of too little memory.
    """
    faults: list[list[str]] = []
    while len(faults) < len(paths):
        code, lines, error = _checked(check, paths[len(faults) :])
        faults += [json.loads(line) for line in lines]
        if lines:
            continue
        path = paths[len(faults)]
        if code not in _CRASHES:
            raise MachineError(
                f"{path}: could not be checked ({error or f'exit code {code}'}). "
                "Make sure that there is enough memory, then run again."
            )
        reason = signal.Signals(-code).name
        faults.append([f"{path}: damaged HDF5 file; reading it crashes ({reason})."])
    return faults


def _checked(
    check: Callable[[Path], list[str]], paths: Sequence[Path]
) -> tuple[int, list[str], str]:
    """Check files in a child: its exit code, one JSON line per checked file, and its error."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of a fork in a process with threads; this child does not wait for them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_child(check, paths, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as pipe:
            *lines, rest = pipe.read().split("\n")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, lines, rest


def _run_child(check: Callable[[Path], list[str]], paths: Sequence[Path], writing: int) -> NoReturn:
    """Check the files and end; a crash prints nothing and leaves no core file."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, _STDOUT)
        os.dup2(devnull, _STDERR)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            try:
                for path in paths:
                    print(json.dumps(check(path)), file=pipe, flush=True)
                code = 0
            except BaseException as error:  # noqa: BLE001 - the parent raises it
                pipe.write(" ".join([type(error).__name__, *str(error).split()]))
    finally:
        os._exit(code)

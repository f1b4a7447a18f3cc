"""Looking at a file in a process that it may crash: HDF5 trusts what a file says of its layout."""

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

# Exit codes of a process that a file brought down.
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE}
_STDOUT, _STDERR = 1, 2


def in_child(look: Callable[[Path], list[str]], paths: Sequence[Path]) -> list[list[str]]:
    """What `look` says of each file, looking in a fork of this process: milliseconds, not a start.

    A file that ends that process, as the first that it looked at, is one sentence; one behind
    others is looked at again by the next process, which goes on from there. Raises MachineError
    where the look itself fails, for want of memory for one.
    """
    found: list[list[str]] = []
    while len(found) < len(paths):
        code, answers, error = _looked_at(look, paths[len(found) :])
        found += [json.loads(one) for one in answers]
        if answers:
            continue
        path = paths[len(found)]
        if code not in _CRASHES:
            raise MachineError(f"{path} could not be checked: {error or f'exit code {code}'}")
        reason = signal.Signals(-code).name
        rule = "must be whole and sound HDF5, got a file that ends its reader"
        found.append([f"{path} {rule}: {reason}"])
    return found


def _looked_at(
    look: Callable[[Path], list[str]], paths: Sequence[Path]
) -> tuple[int, list[str], str]:
    """The exit code of a child, a line for each file that it came to the end of, and its error."""
    answer, answering = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads beside a fork; this child waits for none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer_and_end(look, paths, answering)
    os.close(answering)
    try:
        with os.fdopen(answer, encoding="utf-8") as pipe:
            *lines, rest = pipe.read().split("\n")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, lines, rest


def _answer_and_end(
    look: Callable[[Path], list[str]], paths: Sequence[Path], answering: int
) -> NoReturn:
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
                for path in paths:
                    print(json.dumps(look(path)), file=pipe, flush=True)
                code = 0
            except BaseException as error:  # noqa: BLE001 - the parent raises it
                pipe.write(" ".join([type(error).__name__, *str(error).split()]))
    finally:
        os._exit(code)

"""The end of an interrupted or failed run: no signal is lost, and no process outlives the run."""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, cast

import psutil

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_SECONDS_UNTIL_RAISED_AGAIN = 0.01


class Interrupted(SystemExit):
    """A signal asked this process to end; the exit code says which."""


def interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP raise Interrupted in the main thread, as Ctrl-C raises an error."""
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signal_number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(signal_number, _interrupt)
    sys.unraisablehook = _raise_again


def code_of_interruption(error: BaseException | None) -> int | None:
    """Return the exit code of the interruption that led to an error; None if none did.

    The cleanup after an interruption may raise another error, as joblib's does while it starts its
    processes.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return 128 + signal.SIGINT
        if isinstance(error, Interrupted):
            return cast(int, error.code)
        error = error.__context__
    return None


@contextmanager
def no_process_left_behind() -> Iterator[None]:
    """Kill the descendants of this process if the block raises.

    joblib kills the processes of an interrupted multirun that it knows. One that was being started
    at that moment would wait for work for minutes. Elsewhere than on Linux, descendants whose own
    parent has ended are not found.
    """
    if sys.platform == "linux":  # orphans become children of this process
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    except BaseException:
        while processes := _descendants():  # a process may start another one before it is killed
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.01)
        raise


def _interrupt(signal_number: int, _: FrameType | None) -> NoReturn:
    raise Interrupted(128 + signal_number)


def _raise_again(dropped: sys.UnraisableHookArgs) -> None:
    """Raise an interruption again, a moment later, if Python has dropped it.

    Python prints and drops what is raised in `__del__` and in callbacks of weak references, and a
    signal may arrive there.
    """
    error = dropped.exc_value
    if not isinstance(error, (Interrupted, KeyboardInterrupt)):
        sys.__unraisablehook__(dropped)
        return
    number = cast(int, code_of_interruption(error)) - 128
    signal.signal(signal.SIGALRM, lambda _, frame: _interrupt(number, frame))
    signal.setitimer(signal.ITIMER_REAL, _SECONDS_UNTIL_RAISED_AGAIN)


def _descendants() -> list[psutil.Process]:
    """Return the descendants that are alive, except the resource trackers of Python and joblib.

    A tracker ends by itself after it has removed what killed processes have left in shared memory.
    """
    alive = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            is_tracker = "resource_tracker" in " ".join(process.cmdline())
            if not is_tracker and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive

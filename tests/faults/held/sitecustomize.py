"""Count the files that are moved into place and pause before one of them.

Python imports this module at startup. The environment variable HELD names a folder: for each file
that is moved into it, one byte is appended to the file HELD.moved. If HELD_BEFORE is set, the
process pauses before it moves the file with this number.
"""

import os
import time
from typing import Any

_replace = os.replace
_WAIT_SECONDS = 300
# A signal that arrives between Python's last check for signals and the start of a sleep is handled
# only after that sleep. Short sleeps keep the delay short.
_SLEEP_SECONDS = 0.1


def _counted(source: Any, target: Any, **folders: Any) -> None:
    if str(target).startswith(os.environ["HELD"] + os.sep):
        _count()
    _replace(source, target, **folders)


def _count() -> None:
    counter = os.open(os.environ["HELD"] + ".moved", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(counter, b".")
        number = os.lseek(counter, 0, os.SEEK_CUR)
    finally:
        os.close(counter)
    if str(number) == os.environ.get("HELD_BEFORE"):
        _pause()


def _pause() -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(_SLEEP_SECONDS)


os.replace = _counted

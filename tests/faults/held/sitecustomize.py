"""Python runs this at its start: counts the files put in place, and waits before one of them.

HELD is a folder; HELD.placed gets a byte for each file below it; HELD_BEFORE is the number of the
one that waits, if any.
"""

import os
import time
from typing import Any

_replace = os.replace
_WAIT_SECONDS = 300


def _counted(source: Any, target: Any, **folders: Any) -> None:
    if str(target).startswith(os.environ["HELD"] + os.sep):
        _count()
    _replace(source, target, **folders)


def _count() -> None:
    counter = os.open(os.environ["HELD"] + ".placed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(counter, b".")
        number = os.lseek(counter, 0, os.SEEK_CUR)
    finally:
        os.close(counter)
    if str(number) == os.environ.get("HELD_BEFORE"):
        time.sleep(_WAIT_SECONDS)


os.replace = _counted

"""Progress with time left: a bar on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_LINE_EVERY_SECONDS = 20.0
_log = logging.getLogger(__name__)


def progress(items: Iterable[Item], total: int, title: str, row: int = 0) -> Iterator[Item]:
    """Yield `items` while showing how many of `total` are done; `row` keeps parallel bars apart."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(
            items, total=total, desc=title, position=row, leave=False, dynamic_ncols=True
        )
        return
    start = shown = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - shown >= _LINE_EVERY_SECONDS or (done == total and total > 1):
            shown = now
            left_seconds = (now - start) / done * (total - done)
            _log.info(
                "%s: %d of %d, %.0f s gone, %.0f s left", title, done, total, now - start,
                left_seconds,
            )  # fmt: skip

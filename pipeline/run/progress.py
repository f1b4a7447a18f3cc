"""Progress with the time left: a bar on a terminal, a log line every 20 seconds elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from pipeline.run.logs import DETAILS
from pipeline.run.points import label_of_job

Item = TypeVar("Item")
_LINE_EVERY_SECONDS = 20.0
_log = logging.getLogger(__name__)


class Progress:
    """Show how many of `total` items are done; `row` separates the bars of parallel jobs."""

    def __init__(self, total: int, title: str, row: int = 0) -> None:
        self._total, self._title = total, title
        self._done = 0
        self._start = self._shown = time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                desc=label_of_job() + title,
                position=row,
                leave=False,
                dynamic_ncols=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, count: int = 1) -> None:
        """Count `count` more items as done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
            return
        now = time.monotonic()
        is_last = self._done == self._total and self._total > 1
        if count and (is_last or now - self._shown >= _LINE_EVERY_SECONDS):
            # The end of what took less than one line's time is a detail.
            is_short = self._shown == self._start and now - self._start < _LINE_EVERY_SECONDS
            log = DETAILS if is_short else _log
            self._shown = now
            elapsed_seconds = now - self._start
            left_seconds = elapsed_seconds / self._done * (self._total - self._done)
            log.info(
                "%s: %d of %d, %.0f s elapsed, %.0f s left",
                self._title, self._done, self._total, elapsed_seconds, left_seconds,
            )  # fmt: skip


def progress(items: Iterable[Item], total: int, title: str, row: int = 0) -> Iterator[Item]:
    """Yield `items` and show how many of `total` are done; `row` as in Progress."""
    with Progress(total, title, row) as bar:
        for item in items:
            yield item
            bar.advance()

"""Progress with time left: a bar on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

Item = TypeVar("Item")
_LINE_EVERY_SECONDS = 20.0
_log = logging.getLogger(__name__)


class Progress:
    """Shows how many of `total` are done until it is closed; `row` keeps parallel bars apart."""

    def __init__(self, total: int, title: str, row: int = 0) -> None:
        self._total, self._title = total, title
        self._done = 0
        self._start = self._shown = time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=title, position=row, leave=False, dynamic_ncols=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
            return
        now = time.monotonic()
        ended = self._done == self._total and self._total > 1
        if count and (ended or now - self._shown >= _LINE_EVERY_SECONDS):
            self._shown = now
            gone_seconds = now - self._start
            left_seconds = gone_seconds / self._done * (self._total - self._done)
            _log.info(
                "%s: %d of %d, %.0f s gone, %.0f s left",
                self._title, self._done, self._total, gone_seconds, left_seconds,
            )  # fmt: skip


def progress(items: Iterable[Item], total: int, title: str, row: int = 0) -> Iterator[Item]:
    """Yield `items` while showing how many of `total` are done; `row` keeps parallel bars apart."""
    with Progress(total, title, row) as shown:
        for item in items:
            yield item
            shown.advance()

"""Parallel text in plain or gzipped files: what a line is, and what is refused."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from pipeline.errors import DataError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# About 200,000 words: no sentence is as long, and a file without a line end would fill the memory.
_MOST_LINE_BYTES = 2**20
# A pair is suspicious where one side has this many times the words of the other, and some more.
_SUSPICIOUS_RATIO = 3
_SUSPICIOUS_ALLOWANCE_WORDS = 5


def iterate_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text file, gzipped where its name ends in .gz, one at a time.

    A line ends at LF and nowhere else. One CR before the LF (a CRLF file) belongs to the line's
    end. A CR inside a line, U+2028, U+0085 and form feed are content; blank lines are lines. Raises
    DataError where the file is missing, not UTF-8, or a damaged gzip file, and where a line is
    longer than a MiB.
    """
    number = 0
    try:
        with open_bytes(path) as file:
            lines = iter(partial(file.readline, _MOST_LINE_BYTES + 1), b"")
            for number, raw in enumerate(lines, 1):
                if len(raw) > _MOST_LINE_BYTES:
                    raise DataError(
                        f"{path}, line {number} must have at most {_MOST_LINE_BYTES} bytes, "
                        f"got a longer one"
                    )
                line = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except FileNotFoundError:
        raise DataError(f"{path} must exist, got no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path} must be a text file, got a folder") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be UTF-8, got the byte 0x{error.object[error.start]:02x} in line {number}"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} must be a whole gzip file, got a damaged one after line {number} ({error})"
        ) from None


def check_parallel(paths: Sequence[Path]) -> int:
    """The number of lines of several files that stand side by side; blank lines count.

    Raises DataError where a file is empty, and where two differ in their number of lines: with both
    counts and the first line at which they look out of step.
    """
    counts = [sum(1 for _ in iterate_lines(path)) for path in paths]
    for path, count in zip(paths, counts, strict=True):
        if not count:
            raise DataError(f"{path} must hold a line, got an empty file")
        if count != counts[0]:
            raise DataError(
                f"{paths[0]} and {path} must have equally many lines, got {counts[0]} and {count}: "
                f"{_first_suspicious_line(paths[0], path)}"
            )
    return counts[0]


def open_bytes(path: Path) -> BinaryIO:
    """A file opened for reading, unzipped on the way where its name ends in .gz."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _first_suspicious_line(one: Path, other: Path) -> str:
    lines, other_lines = iterate_lines(one), iterate_lines(other)
    number = 0
    while True:
        number += 1
        text, other_text = next(lines, None), next(other_lines, None)
        if text is None or other_text is None:
            return f"line {number} has no counterpart ({(text or other_text or '')[:40]!r})"
        words = sorted((len(text.split()), len(other_text.split())))
        blank = words[0] == 0 < words[1]
        if blank or words[1] > _SUSPICIOUS_RATIO * words[0] + _SUSPICIOUS_ALLOWANCE_WORDS:
            return (
                f"line {number} is the first suspicious one ({text[:40]!r} beside "
                f"{other_text[:40]!r})"
            )

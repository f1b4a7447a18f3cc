"""Read UTF-8 text files line by line."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from pipeline.errors import DataError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# About 200,000 words, longer than any sentence. A file without line ends would fill the memory.
_MAX_LINE_BYTES = 2**20
# All control characters (category Cc) but those that are white space, such as tab and U+0085.
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def iterate_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, which is gzipped if its name ends in .gz.

    Lines end at LF only; a CR directly before the LF is part of the line end. Other separators
    (a CR inside a line, U+2028, U+0085, form feed) are content, and blank lines are lines. A
    byte-order mark at the beginning is left out. Raises DataError if the file is missing, not UTF-8
    or a damaged gzip file, or if a line is longer than 1 MiB or has a control character that is not
    white space.
    """
    number = 0
    try:
        with open_bytes(path) as file:
            lines = iter(partial(file.readline, _MAX_LINE_BYTES + 1), b"")
            for number, raw in enumerate(lines, 1):
                if len(raw) > _MAX_LINE_BYTES:
                    raise DataError(
                        f"{path}, line {number}: longer than {_MAX_LINE_BYTES} bytes. Put one "
                        f"sentence on each line."
                    )
                line = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
                text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
                if not text.isprintable():  # quick, and enough for nearly every line
                    refuse_control_characters(text, path, number)
                yield text
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Check the path.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder. Give a text file.") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x}). Convert "
            f"the file to UTF-8."
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: damaged gzip file after line {number} ({error}). Copy the file again."
        ) from None


def refuse_control_characters(text: str, path: Path, line: int) -> None:
    """Raise DataError if a text has a control character that is not white space, such as NUL."""
    if found := _CONTROL.search(text):
        raise DataError(
            f"{path}, line {line}: control character U+{ord(found[0]):04X}. Remove such characters "
            f"from the file, for example with Moses' remove-non-printing-char.perl."
        )


def has_byte_order_mark(path: Path) -> bool:
    """Tell whether a file begins with the UTF-8 byte-order mark."""
    with open_bytes(path) as file:
        return file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, decompressing it if its name ends in .gz."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")

"""Parallel text in plain files: what a line is, and what is refused."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import DataError

# A pair is suspicious where one side has this many times the words of the other, and some more.
_SUSPICIOUS_RATIO = 3
_SUSPICIOUS_ALLOWANCE_WORDS = 5


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file; a line ends at LF and nowhere else.

    One CR before the LF (a CRLF file) belongs to the line's end. A CR inside a line, U+2028, U+0085
    and form feed are content; blank lines are lines. Raises DataError where the file is missing or
    not UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{path} must exist, got no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} must be UTF-8, got the byte 0x{error.object[error.start]:02x} in line {line}"
        ) from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_parallel(source: Path, reference: Path) -> list[tuple[str, str]]:
    """Pairs (source, reference), line by line; blank lines stay.

    Raises DataError where the files differ in their number of lines, with both counts and the first
    line at which they look out of step.
    """
    sources, references = read_lines(source), read_lines(reference)
    if len(sources) != len(references):
        raise DataError(
            f"{source} and {reference} must have equally many lines, got {len(sources)} and "
            f"{len(references)}: {_first_suspicious_line(sources, references)}"
        )
    return list(zip(sources, references, strict=True))


def _first_suspicious_line(sources: list[str], references: list[str]) -> str:
    for number, (source, reference) in enumerate(zip(sources, references, strict=False), 1):
        words = sorted((len(source.split()), len(reference.split())))
        blank = words[0] == 0 < words[1]
        if blank or words[1] > _SUSPICIOUS_RATIO * words[0] + _SUSPICIOUS_ALLOWANCE_WORDS:
            return (
                f"line {number} is the first suspicious one ({source[:40]!r} beside "
                f"{reference[:40]!r})"
            )
    shorter = min(len(sources), len(references))
    longer = sources if len(sources) > shorter else references
    return f"line {shorter + 1} has no counterpart ({longer[shorter][:40]!r})"

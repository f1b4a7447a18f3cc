"""Tables in Markdown that no text breaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LONGEST_CHARACTERS = 160


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of a header and rows, white space and special characters made harmless."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def short(text: str) -> str:
    """A text, cut where it is too long for a table."""
    return text if len(text) <= _LONGEST_CHARACTERS else f"{text[:_LONGEST_CHARACTERS]}…"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

"""Khresmoi-Summary, medical sentences in several languages, in its published layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from pipeline.data.corpus import Corpus, Paragraph
from pipeline.data.user_files import side_by_side
from pipeline.errors import DataError

_PARTS = ("dev", "test")


def read_khresmoi(folder: Path, languages: Sequence[str]) -> Corpus:
    """Its dev and test parts as one corpus: khresmoi-summary-{part}.{language}, a sentence a line.

    Raises DataError where a file is missing or empty, or where sides differ in their lines.
    """
    parts = []
    for part in _PARTS:
        sides = {one: folder / f"khresmoi-summary-{part}.{one}" for one in languages}
        for path in sides.values():
            if not path.is_file():
                raise DataError(f"{path} must exist, a side of Khresmoi-Summary, got no such file")
        parts.append(side_by_side(f"Khresmoi-Summary, {part}", sides))

    def paragraphs() -> Iterator[Paragraph]:
        return chain.from_iterable(one.paragraphs() for one in parts)

    return Corpus(
        "Khresmoi-Summary, dev and test",
        "CC BY-NC: see its publisher",
        "medical",
        {},
        frozenset(languages),
        paragraphs,
    )

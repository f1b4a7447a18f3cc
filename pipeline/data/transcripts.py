"""Reference transcripts of the user's own copy of LibriSpeech: read English without punctuation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.data.corpus import Corpus, Paragraph
from pipeline.data.text import iterate_lines
from pipeline.errors import DataError


def read_transcripts(folder: Path, subset: str) -> Corpus:
    """The transcripts below {folder}/{subset}, in the order of their files, in lower case.

    Lines of `{speaker}-{chapter}.trans.txt` are an utterance id, a space, and capital letters.
    Raises DataError where there is no such file, or where a line is not of that form.
    """
    root = folder / subset
    files = sorted(root.glob("*/*/*.trans.txt"))
    if not files:
        raise DataError(
            f"{root} must hold transcripts as speaker/chapter/*.trans.txt (data.librispeech), "
            f"got none"
        )
    return Corpus(
        name=f"LibriSpeech {subset}, transcripts",
        licence="CC-BY-4.0",
        domain="spoken, story books",
        packages={},
        languages=frozenset({"en"}),
        paragraphs=lambda: _utterances(files),
    )


def chapter_transcripts(path: Path) -> Iterator[tuple[str, str]]:
    """Utterance id and words of each line of a .trans.txt file; DataError for any other line."""
    chapter = path.name.removesuffix(".trans.txt")
    for number, line in enumerate(iterate_lines(path), 1):
        utterance, _, text = line.partition(" ")
        named = utterance.startswith(f"{chapter}-") and "/" not in utterance
        if not named or not text.strip():
            raise DataError(
                f"{path}, line {number} must be an utterance id of {chapter} and its words, "
                f"got {line[:60]!r}"
            )
        yield utterance, text.strip()


def _utterances(files: list[Path]) -> Iterator[Paragraph]:
    for path in files:
        chapter = path.name.removesuffix(".trans.txt")
        for _, text in chapter_transcripts(path):
            yield Paragraph(chapter, {"en": [text.lower()]})

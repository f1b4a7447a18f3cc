"""What every corpus gives: paragraphs in several languages; and sentences aligned from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

# The end of a sentence: closing punctuation, white space, and what can begin a sentence.
_BOUNDARY = re.compile(
    r"""(?<=[.!?])(?P<close>["'”“\u2019»)\]]*)\s+(?=["'„“«(\[]*[A-ZÀ-ÖØ-Þ0-9])"""
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|Fig|No|Nr|z\. ?B|d\. ?h|u\. ?a|usw|bzw|ggf|evtl|vgl|ca"
    r"|p\. ?ex|c\.-à-d|env|[A-Za-z])\.$"
)


class Paragraph(NamedTuple):
    """One paragraph of a page: language -> its sentences."""

    page: str
    sentences: dict[str, list[str]]


@dataclass(frozen=True)
class Corpus:
    """A corpus as read, before any cleaning, with where it came from.

    `paragraphs()` reads it once more from its beginning; `languages` are those that it has of the
    ones that were asked for.
    """

    name: str
    licence: str
    domain: str
    packages: dict[str, dict[str, str]]
    languages: frozenset[str]
    paragraphs: Callable[[], Iterator[Paragraph]]


class AlignedSentence(NamedTuple):
    """One sentence in several languages: language -> text."""

    page: str
    text: dict[str, str]


def split_sentences(text: str) -> list[str]:
    """The sentences of a paragraph; joined by single spaces they give the paragraph again."""
    sentences: list[str] = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        end = boundary.end("close")
        if not _ABBREVIATION.search(text, start, end):
            sentences.append(text[start:end])
            start = boundary.end()
    sentences.append(text[start:])
    return [sentence for sentence in sentences if sentence]


def align(
    paragraphs: Iterable[Paragraph], languages: list[str], counts: Counter[str]
) -> Iterator[AlignedSentence]:
    """Sentences in all of `languages`, of the paragraphs where all sides have as many.

    Adds to `counts`: paragraphs read and dropped, sentences given.
    """
    for name in ("paragraphs_read", "paragraphs_with_unequal_sentence_counts", "sentences"):
        counts[name] += 0
    for paragraph in paragraphs:
        counts["paragraphs_read"] += 1
        sides = [paragraph.sentences.get(language, []) for language in languages]
        if not sides[0] or len({len(side) for side in sides}) != 1:
            counts["paragraphs_with_unequal_sentence_counts"] += 1
            continue
        counts["sentences"] += len(sides[0])
        for sentence in zip(*sides, strict=True):
            yield AlignedSentence(paragraph.page, dict(zip(languages, sentence, strict=True)))

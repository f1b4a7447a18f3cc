"""Paragraphs of a corpus that take long to parse, kept beside the downloads."""

from __future__ import annotations

import hashlib
import heapq
import json
import logging
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from pipeline.data.debian_packages import Package
from pipeline.run.files import digest, file_sha256

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


class SpooledSentences:
    """Sentences in a file of their own, read as often as needed."""

    def __init__(self, path: Path, languages: list[str]) -> None:
        self._path = path
        self._chosen: list[int] | None = None
        self._count = 0
        self.languages = languages

    def __len__(self) -> int:
        return self._count if self._chosen is None else len(self._chosen)

    def __iter__(self) -> Iterator[AlignedSentence]:
        chosen = None if self._chosen is None else iter(self._chosen)
        following = None if chosen is None else next(chosen, None)
        with self._path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file):
                if chosen is not None:
                    if number != following:
                        continue
                    following = next(chosen, None)
                page, *sides = json.loads(line)
                yield AlignedSentence(page, dict(zip(self.languages, sides, strict=True)))

    def write(self, sentences: Iterable[AlignedSentence]) -> None:
        """Put sentences in the file, in place of what it held."""
        self._count, self._chosen = 0, None
        with self._path.open("w", encoding="utf-8", newline="\n") as file:
            for sentence in sentences:
                row = [sentence.page, *(sentence.text[name] for name in self.languages)]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._count += 1

    def choose(self, most: int, seed: int) -> None:
        """Keep at most this many, chosen by the seed, in their order."""
        if most < len(self):
            self._chosen = sorted(random.Random(seed).sample(range(self._count), most))


@dataclass(frozen=True)
class HeldOut:
    """Test and dev sentences, and every page that training must not see."""

    test: list[AlignedSentence]
    dev: list[AlignedSentence]
    pages: frozenset[str]


def hold_out(
    sentences: Iterable[AlignedSentence], test_sentences: int, dev_sentences: int, seed: int
) -> HeldOut:
    """Whole pages, in the order of a seeded hash of their path, until test and dev are full.

    A set that is full is cut to its size; what is cut from it is on a held-out page and so in no
    set at all. Where the corpus is too small, sets are short: the caller sees their lengths. The
    sentences of a page must come one after the other; few more than will be held out are in memory.
    """
    order = iter(_first_pages(sentences, test_sentences + dev_sentences, seed))
    sets: list[list[AlignedSentence]] = []
    held: set[str] = set()
    for size in (test_sentences, dev_sentences):
        filled: list[AlignedSentence] = []
        while len(filled) < size and (page := next(order, None)) is not None:
            filled += page
            held.add(page[0].page)
        sets.append(filled[:size])
    return HeldOut(test=sets[0], dev=sets[1], pages=frozenset(held))


def _first_pages(
    sentences: Iterable[AlignedSentence], n_sentence: int, seed: int
) -> list[list[AlignedSentence]]:
    """The pages that come first in the order, with enough sentences for `n_sentence` and a cut."""
    heap: list[tuple[int, int, list[AlignedSentence]]] = []
    held = largest = 0
    for number, (path, content) in enumerate(groupby(sentences, key=lambda one: one.page)):
        page = list(content)
        place = int.from_bytes(hashlib.sha256(f"{seed}:{path}".encode()).digest())
        heapq.heappush(heap, (-place, number, page))
        held += len(page)
        largest = max(largest, len(page))
        # The set that is filled first may leave over as much as a page.
        while heap and held - len(heap[0][2]) >= n_sentence + largest:
            held -= len(heapq.heappop(heap)[2])
    return [page for _, _, page in sorted(heap, key=lambda one: -one[0])]


_log = logging.getLogger(__name__)


def cached_paragraphs(
    code: Path, downloads: Path, packages: list[Package], parse: Callable[[], Iterable[Paragraph]]
) -> Callable[[], Iterator[Paragraph]]:
    """What `parse` gives, as a function that reads it from a file; parsed where there is none.

    The file is known by a digest of the packages, of their order, of `code` (the module that
    parses) and of the code that splits sentences.
    """
    splitting = Path(__file__).with_name("corpus.py")
    parts = [file_sha256(code), file_sha256(splitting)]
    key = digest([(one.name, one.sha256) for one in packages], parts)
    cache = downloads / f"{code.stem}-{key[:16]}.jsonl"
    if not cache.is_file():
        _log.info("parsing %s", ", ".join(package.path.name for package in packages))
        _write_whole(cache, parse())
    return lambda: _read(cache)


def _write_whole(cache: Path, paragraphs: Iterable[Paragraph]) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    temporary = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for paragraph in paragraphs:
                file.write(json.dumps(paragraph, ensure_ascii=False, separators=(",", ":")) + "\n")
        temporary.replace(cache)
    finally:
        temporary.unlink(missing_ok=True)


def _read(cache: Path) -> Iterator[Paragraph]:
    with cache.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            page, sentences = json.loads(line)
            yield Paragraph(page, sentences)

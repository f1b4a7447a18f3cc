"""Text corpora: paragraphs, aligned sentences, and held-out pages."""

from __future__ import annotations

import hashlib
import heapq
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

# Closing punctuation, white space, and a character that can begin a sentence.
_BOUNDARY = re.compile(
    r"""(?<=[.!?])(?P<close>["'”“\u2019»)\]]*)\s+(?=["'„“«(\[]*[A-ZÀ-ÖØ-Þ0-9])"""
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|Fig|No|Nr|z\. ?B|d\. ?h|u\. ?a|usw|bzw|ggf|evtl|vgl|ca"
    r"|p\. ?ex|c\.-à-d|env|[A-Za-z])\.$"
)


class Paragraph(NamedTuple):
    """One paragraph of a page: language -> its sentences.

    Sentences of one `page` are held out together. It is a document, or a block of lines.
    """

    page: str
    sentences: dict[str, list[str]]


@dataclass(frozen=True)
class Corpus:
    """A corpus before cleaning, with its origin.

    `languages` are those of the requested languages that it has. `paragraphs()` reads the corpus
    again from the beginning. `has_documents`: pages are documents, not blocks of lines, and serve
    as groups when intervals are resampled.
    """

    name: str
    licence: str
    domain: str
    packages: dict[str, dict[str, str]]
    languages: frozenset[str]
    paragraphs: Callable[[], Iterator[Paragraph]]
    has_documents: bool = False


class AlignedSentence(NamedTuple):
    """One sentence in several languages: language -> text. `page` is that of its paragraph."""

    page: str
    text: dict[str, str]


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences, which joined by single spaces give it again."""
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
    """Yield the sentences of those paragraphs that have equally many in all languages.

    Adds the numbers of paragraphs read, paragraphs dropped and sentences to `counts`.
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
    """Sentences in a temporary file, which can be read repeatedly."""

    def __init__(self, path: Path, languages: list[str]) -> None:
        self._path = path
        self._chosen: list[int] | None = None
        self._count = 0
        self.languages = languages

    def __len__(self) -> int:
        return self._count if self._chosen is None else len(self._chosen)

    def __iter__(self) -> Iterator[AlignedSentence]:
        chosen = None if self._chosen is None else iter(self._chosen)
        next_chosen = None if chosen is None else next(chosen, None)
        with self._path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file):
                if chosen is not None:
                    if number != next_chosen:
                        continue
                    next_chosen = next(chosen, None)
                page, *sides = json.loads(line)
                yield AlignedSentence(page, dict(zip(self.languages, sides, strict=True)))

    def write(self, sentences: Iterable[AlignedSentence]) -> None:
        """Replace the content of the file."""
        self._count, self._chosen = 0, None
        with self._path.open("w", encoding="utf-8", newline="\n") as file:
            for sentence in sentences:
                row = [sentence.page, *(sentence.text[name] for name in self.languages)]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._count += 1

    def choose(self, max_sentences: int, seed: int) -> None:
        """Keep a random sample of at most `max_sentences`, in the order of the file."""
        if max_sentences < len(self):
            sample = random.Random(seed).sample(range(self._count), max_sentences)
            self._chosen = sorted(sample)


@dataclass(frozen=True)
class HeldOut:
    """Test and dev sentences, and the pages that must be kept out of training."""

    test: list[AlignedSentence]
    dev: list[AlignedSentence]
    pages: frozenset[str]


def hold_out(
    sentences: Iterable[AlignedSentence], test_sentences: int, dev_sentences: int, seed: int
) -> HeldOut:
    """Hold out whole pages until the test and dev sets are full.

    Pages are taken in the order of a seeded hash of their name. A full set is cut to its size; the
    sentences cut off belong to a held-out page and are in no set. The sets of a small corpus may be
    shorter than requested. The sentences of a page must be adjacent. Memory holds little more than
    the held-out sentences.
    """
    pages = iter(_first_pages(sentences, test_sentences + dev_sentences, seed))
    sets: list[list[AlignedSentence]] = []
    held_out_pages: set[str] = set()
    for size in (test_sentences, dev_sentences):
        filled: list[AlignedSentence] = []
        while len(filled) < size and (page := next(pages, None)) is not None:
            filled += page
            held_out_pages.add(page[0].page)
        sets.append(filled[:size])
    return HeldOut(test=sets[0], dev=sets[1], pages=frozenset(held_out_pages))


def _first_pages(
    sentences: Iterable[AlignedSentence], n_sentence: int, seed: int
) -> list[list[AlignedSentence]]:
    """Return the first pages in hash order, with enough sentences for both sets."""
    heap: list[tuple[int, int, list[AlignedSentence]]] = []
    n_held = n_largest = 0
    for number, (name, content) in enumerate(groupby(sentences, key=lambda row: row.page)):
        page = list(content)
        order = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest())
        heapq.heappush(heap, (-order, number, page))
        n_held += len(page)
        n_largest = max(n_largest, len(page))
        # Cutting the first set to its size may waste up to one page.
        while heap and n_held - len(heap[0][2]) >= n_sentence + n_largest:
            n_held -= len(heapq.heappop(heap)[2])
    return [page for _, _, page in sorted(heap, key=lambda entry: -entry[0])]

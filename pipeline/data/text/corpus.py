"""Text corpora: paragraphs, aligned sentences, and held-out pages."""

from __future__ import annotations

import hashlib
import heapq
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    as groups when intervals are resampled. `counts`: what was found or changed while it was read.
    `too_rare`: language -> in how many units it is, if these are too few to be one of `languages`.
    """

    name: str
    licence: str
    domain: str
    packages: dict[str, dict[str, str]]
    languages: frozenset[str]
    paragraphs: Callable[[], Iterator[Paragraph]]
    has_documents: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    too_rare: Mapping[str, str] = field(default_factory=dict)


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

    Adds the numbers of paragraphs read, paragraphs dropped and sentences to `counts`. A unit of a
    TMX file is a paragraph of one sentence.
    """
    for name in (
        *("paragraphs_read", "paragraphs_without_all_languages"),
        *("paragraphs_with_unequal_sentence_counts", "sentences"),
    ):
        counts[name] += 0
    for paragraph in paragraphs:
        counts["paragraphs_read"] += 1
        sides = [paragraph.sentences.get(language, []) for language in languages]
        if not all(sides):
            counts["paragraphs_without_all_languages"] += 1
            continue
        if len({len(side) for side in sides}) != 1:
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

    def beside(self, name: str, languages: list[str]) -> SpooledSentences:
        """Return sentences of their own in another file of the same folder."""
        return SpooledSentences(self._path.with_suffix(f".{name}.jsonl"), languages)

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
    """Test and dev sentences, and the pages that must be kept out of training.

    `n_over_page_limit`: number of sentences on these pages that are in no set, since their page
    has enough sentences without them.
    """

    test: list[AlignedSentence]
    dev: list[AlignedSentence]
    pages: frozenset[str]
    n_over_page_limit: int = 0


def hold_out(
    sentences: Iterable[AlignedSentence],
    test_sentences: int,
    dev_sentences: int,
    max_sentences_per_page: int | None,
    seed: int,
) -> HeldOut:
    """Hold out whole pages until the test and dev sets are full.

    Pages are taken in the order of a seeded hash of their name. A set has at most
    `max_sentences_per_page` of each, chosen by a seeded hash of their text; None: all. A full set
    is cut to its size. The sentences that are left out belong to a held-out page and are in no set.
    The sets of a small corpus may be shorter than requested. Memory holds little more than the
    held-out sentences.
    """
    pages = iter(
        _first_pages(sentences, test_sentences + dev_sentences, max_sentences_per_page, seed)
    )
    sets: list[list[AlignedSentence]] = []
    held_out_pages: set[str] = set()
    n_over_page_limit = 0
    for size in (test_sentences, dev_sentences):
        filled: list[AlignedSentence] = []
        while len(filled) < size and (page := next(pages, None)) is not None:
            filled += page.sentences
            held_out_pages.add(page.sentences[0].page)
            n_over_page_limit += page.n_over_limit
        sets.append(filled[:size])
    return HeldOut(sets[0], sets[1], frozenset(held_out_pages), n_over_page_limit)


@dataclass
class _Page:
    sentences: list[AlignedSentence]
    n_over_limit: int = 0

    def add(self, sentences: Iterable[AlignedSentence], limit: int | None, seed: int) -> None:
        """Add sentences; beyond the limit, keep those with the first hashes, in order."""
        self.sentences += sentences
        if limit is not None and len(self.sentences) > limit:
            order = [seeded_hash(seed, *sentence.text.values()) for sentence in self.sentences]
            first = heapq.nsmallest(limit, range(len(order)), key=order.__getitem__)
            self.n_over_limit += len(order) - limit
            self.sentences = [self.sentences[index] for index in sorted(first)]


def _first_pages(
    sentences: Iterable[AlignedSentence], n_sentence: int, limit: int | None, seed: int
) -> list[_Page]:
    """Return the first pages in hash order, with enough sentences for both sets."""
    pages: dict[str, _Page] = {}
    heap: list[tuple[int, str]] = []
    n_held = n_largest = 0
    # The lines of a document need not be adjacent. A page that left the heap may come back, but
    # the pages before it have enough sentences, so that it leaves again.
    for name, content in groupby(sentences, key=lambda row: row.page):
        if name not in pages:
            pages[name] = _Page([])
            heapq.heappush(heap, (-seeded_hash(seed, name), name))
        page = pages[name]
        n_held -= len(page.sentences)
        page.add(content, limit, seed)
        n_held += len(page.sentences)
        n_largest = max(n_largest, len(page.sentences))
        # Cutting the first set to its size may waste up to one page.
        while heap and n_held - len(pages[heap[0][1]].sentences) >= n_sentence + n_largest:
            n_held -= len(pages.pop(heapq.heappop(heap)[1]).sentences)
    return [pages[name] for _, name in sorted(heap, reverse=True)]


def seeded_hash(seed: int, *texts: str) -> int:
    """Return the hash that orders texts in a way that depends on the seed only."""
    return int.from_bytes(hashlib.sha256(":".join([str(seed), *texts]).encode()).digest())

"""Which pages are held out of training, and the dev and test sentences on them."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from pipeline.data.corpus import AlignedSentence


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

"""Which pages are held out of training, and the dev and test sentences on them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

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
    set at all. Where the corpus is too small, sets are short: the caller sees their lengths.
    """
    pages: dict[str, list[AlignedSentence]] = {}
    for sentence in sentences:
        pages.setdefault(sentence.page, []).append(sentence)
    order = iter(sorted(pages, key=lambda page: hashlib.sha256(f"{seed}:{page}".encode()).digest()))
    sets: list[list[AlignedSentence]] = []
    held: set[str] = set()
    for size in (test_sentences, dev_sentences):
        filled: list[AlignedSentence] = []
        while len(filled) < size and (page := next(order, None)) is not None:
            filled += pages[page]
            held.add(page)
        sets.append(filled[:size])
    return HeldOut(test=sets[0], dev=sets[1], pages=frozenset(held))

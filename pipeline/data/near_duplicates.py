"""Training sentences that are nearly a held-out sentence."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

_USUAL_WORDS = 100
_WORD = re.compile(r"\w+")


class HeldOutIndex:
    """The held-out sentences, by their rarest words.

    The overlap is the Jaccard index of the sets of lower-cased words, 0 < `jaccard` <= 1. Two sets
    that overlap that much share one of their rarest words, so only those are looked up.
    """

    def __init__(self, held_out: Sequence[str], jaccard: float) -> None:
        self._jaccard = jaccard
        self._needed = [self._share(n_word) for n_word in range(_USUAL_WORDS)]
        held_words = [_words(text) for text in held_out]
        frequency = Counter(word for words in held_words for word in words)
        in_order = sorted(frequency, key=lambda word: (frequency[word], word))
        # From 1, the rarest word, so that `filter` leaves out what is not there.
        self._rank = {word: rank for rank, word in enumerate(in_order, 1)}
        self._with_word: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
        for words in held_words:
            ranks = sorted(self._rank[word] for word in words)
            for rank in self._rarest(ranks, len(words)):
                self._with_word[rank].append(frozenset(ranks))

    def is_near(self, text: str) -> bool:
        """Is the word overlap of `text` with any held-out sentence at least `jaccard`?"""
        words = _words(text)
        ranks = sorted(filter(None, map(self._rank.get, words)))
        rarest = self._rarest(ranks, len(words))
        candidates = [held for rank in rarest for held in self._with_word.get(rank, ())]
        known = frozenset(ranks) if candidates else frozenset()
        for held in candidates:
            shared = len(known & held)
            if shared / (len(words) + len(held) - shared) >= self._jaccard:
                return True
        return False

    def _rarest(self, ranks: list[int], n_word: int) -> list[int]:
        """Of the words of a text that are known, in order, the first that must hold a match."""
        needed = self._needed[n_word] if n_word < len(self._needed) else self._share(n_word)
        return ranks[: max(0, len(ranks) - needed + 1)]

    def _share(self, n_word: int) -> int:
        """How many of its words a text must share with a match."""
        # Rounded first: 0.8 * 5 words must need 4 shared ones, whatever the last float digit.
        return max(1, math.ceil(round(self._jaccard * n_word, 9)))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))

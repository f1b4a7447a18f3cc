"""Training sentences that are nearly a held-out sentence."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], held_out: Sequence[str], jaccard: float) -> list[bool]:
    """[sentence] of `texts`: is its word overlap with any of `held_out` at least `jaccard`?

    The overlap is the Jaccard index of the sets of lower-cased words, 0 < `jaccard` <= 1. Two sets
    that overlap that much share one of their rarest words, so only those are looked up.
    """
    held_words = [_words(text) for text in held_out]
    frequency = Counter(word for words in held_words for word in words)

    def rarest(words: frozenset[str]) -> list[str]:
        # Rounded first: 0.8 * 5 words must need 4 shared ones, whatever the last float digit.
        needed = max(1, math.ceil(round(jaccard * len(words), 9)))
        in_order = sorted(words, key=lambda word: (frequency[word], word))
        return in_order[: len(words) - needed + 1]

    index: defaultdict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(held_words):
        for word in rarest(words):
            index[word].append(number)

    def is_near(words: frozenset[str]) -> bool:
        candidates = {number for word in rarest(words) for number in index.get(word, ())}
        return any(_overlap(words, held_words[number]) >= jaccard for number in candidates)

    return [is_near(_words(text)) for text in texts]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)

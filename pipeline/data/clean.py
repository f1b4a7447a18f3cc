"""The filters that every sentence passes before it is used, with a count for each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.data.corpus import AlignedSentence

# English is a side of every corpus: sentences are measured and deduplicated by it.
PIVOT = "en"
MINIMUM_LETTER_SHARE = 0.6
MAXIMUM_LENGTH_RATIO = 2.2
LENGTH_ALLOWANCE_WORDS = 3
_MARKUP_OR_URL = re.compile(r"</?\w[^<>]*>|&#?\w+;|[{}\\]|\b(?:https?|ftp|file|mailto):|\bwww\.")

_RULES = (
    "word_count",
    "letter_share",
    "markup_or_url",
    "length_ratio",
    "untranslated",
    "duplicate",
)


@dataclass(frozen=True)
class LengthRange:
    """Least and most words of the English side."""

    least_words: int
    most_words: int


def clean(
    sentences: Iterable[AlignedSentence], length: LengthRange
) -> tuple[list[AlignedSentence], dict[str, int]]:
    """The sentences that pass every filter, in order; and counts: read, dropped by rule, kept.

    A sentence is counted under the first rule that it breaks.
    """
    kept: list[AlignedSentence] = []
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    read = 0
    for sentence in sentences:
        read += 1
        rule = _broken_rule(sentence.text, length)
        pivot = sentence.text[PIVOT].casefold()
        if rule is None and pivot in seen:
            rule = "duplicate"
        if rule is None:
            seen.add(pivot)
            kept.append(sentence)
        else:
            counts[rule] += 1
    dropped = {f"dropped_{rule}": counts[rule] for rule in _RULES}
    return kept, {"read": read, **dropped, "kept": len(kept)}


def _broken_rule(text: dict[str, str], length: LengthRange) -> str | None:
    words = {language: len(side.split()) for language, side in text.items()}
    if not length.least_words <= words[PIVOT] <= length.most_words:
        return "word_count"
    if any(_letter_share(side) < MINIMUM_LETTER_SHARE for side in text.values()):
        return "letter_share"
    if any(_MARKUP_OR_URL.search(side) for side in text.values()):
        return "markup_or_url"
    shortest, longest = min(words.values()), max(words.values())
    if longest > MAXIMUM_LENGTH_RATIO * shortest + LENGTH_ALLOWANCE_WORDS:
        return "length_ratio"
    if len({side.casefold() for side in text.values()}) < len(text):
        return "untranslated"
    return None


def _letter_share(text: str) -> float:
    return sum(map(str.isalpha, text)) / len(text) if text else 0.0

"""The filters that every sentence passes before it is used, with a count for each."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.data.corpus import AlignedSentence
from pipeline.data.distinct import SeenTexts
from pipeline.data.language import LanguageProfile

MINIMUM_LETTER_SHARE = 0.6
MAXIMUM_LENGTH_RATIO = 2.2
LENGTH_ALLOWANCE_WORDS = 3
_ASCII_LETTERS = string.ascii_letters.encode()
_MARKUP_OR_URL = re.compile(r"</?\w[^<>]*>|&#?\w+;|[{}\\]|\b(?:https?|ftp|file|mailto):|\bwww\.")
# What every match of the pattern above holds: most texts hold none of it, and that is quick to see.
_SIGNS_OF_MARKUP = ("<", "&", "{", "}", "\\", ":", "www.")

RULES = {
    "word_count": "words of the pivot side outside data.min_words to data.max_words",
    "letter_share": f"a side with fewer than {MINIMUM_LETTER_SHARE:.0%} letters",
    "markup_or_url": "a tag, an entity, a brace, a backslash or an address",
    "length_ratio": f"one side over {MAXIMUM_LENGTH_RATIO} times as many words as another, plus "
    f"{LENGTH_ALLOWANCE_WORDS}",
    "untranslated": "two sides that are the same text",
    "other_language": "a side whose words speak for the language of another side",
    "duplicate": "a pivot side that was kept before",
}


@dataclass(frozen=True)
class CleaningRules:
    """Least and most words of the pivot side, by which duplicates go too; and the languages."""

    pivot: str
    least_words: int
    most_words: int
    languages: LanguageProfile | None = None


def clean(
    sentences: Iterable[AlignedSentence], rules: CleaningRules, counts: Counter[str]
) -> Iterator[AlignedSentence]:
    """The sentences that pass every filter, in order, one at a time.

    Adds to `counts`: read, dropped by rule (`RULES`), kept. A sentence is counted under the first
    rule that it breaks.
    """
    for name in ("read", *(f"dropped_{rule}" for rule in RULES), "kept"):
        counts[name] += 0
    seen = SeenTexts()
    for sentence in sentences:
        counts["read"] += 1
        rule = broken_rule(sentence.text, rules)
        if rule is None and not seen.add(sentence.text[rules.pivot].casefold()):
            rule = "duplicate"
        if rule is None:
            counts["kept"] += 1
            yield sentence
        else:
            counts[f"dropped_{rule}"] += 1


def broken_rule(text: dict[str, str], rules: CleaningRules) -> str | None:
    """The first of `RULES` but the last that a sentence breaks: language -> text."""
    words = {language: side.lower().split() for language, side in text.items()}
    if not rules.least_words <= len(words[rules.pivot]) <= rules.most_words:
        return "word_count"
    for side in text.values():
        if not _has_letters_enough(side):
            return "letter_share"
    for side in text.values():
        for sign in _SIGNS_OF_MARKUP:
            if sign in side and _MARKUP_OR_URL.search(side):
                return "markup_or_url"
    lengths = sorted(map(len, words.values()))
    if lengths[-1] > MAXIMUM_LENGTH_RATIO * lengths[0] + LENGTH_ALLOWANCE_WORDS:
        return "length_ratio"
    if len({side.casefold() for side in text.values()}) < len(text):
        return "untranslated"
    if rules.languages is not None:
        for language, side_words in words.items():
            if rules.languages.is_other_language(side_words, language):
                return "other_language"
    return None


def _has_letters_enough(text: str) -> bool:
    needed = MINIMUM_LETTER_SHARE * len(text)
    # Bytes that are no ASCII letters are at least as many as characters that are no letters.
    if text and len(text) - len(text.encode().translate(None, _ASCII_LETTERS)) >= needed:
        return True
    return bool(text) and sum(map(str.isalpha, text)) >= needed

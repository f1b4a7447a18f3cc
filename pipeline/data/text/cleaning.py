"""The filters that every sentence passes before it is used, with a count for each."""

from __future__ import annotations

import math
import re
import string
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, repeat

from pipeline.data.text.corpus import AlignedSentence, Corpus, align

_FIRST_SLOTS = 1 << 12


class SeenTexts:
    """A set of texts that keeps 64-bit hashes only, in one open-addressed array.

    40 million texts take 1 GiB, where a set of Python integers takes four; two different texts
    among them collide with a probability of 0.00004. The hash is the same in every process.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SLOTS))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text; was it new?"""
        # 0 marks an empty slot.
        code = int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) or 1
        slot = self._slot(code)
        if self._slots[slot]:
            return False
        self._slots[slot] = code
        self._count += 1
        if 2 * self._count > len(self._slots):
            self._grow()
        return True

    def _slot(self, code: int) -> int:
        """Where a hash stands, or the empty slot where it would."""
        slots = self._slots
        last = len(slots) - 1
        slot = code & last
        while slots[slot] not in (0, code):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("Q", bytes(2 * 8 * len(old)))
        for code in old:
            if code:
                self._slots[self._slot(code)] = code


_LEARNT_FROM_SENTENCES = 50_000
# A text is of another language where that one makes its words e^4 = 55 times as likely.
MARGIN_NATS = 4.0
# So that it takes two words: names and terms of another language stand in good sentences too.
_MOST_WEIGHT_NATS = 3.0
_LEAST_COUNT = 5
_SMOOTHING = 0.5


@dataclass(frozen=True)
class LanguageProfile:
    """Language -> word -> nats by which the word is likelier there than in the likeliest other.

    A word that no side uses often has no weight, so that names and new terms decide nothing.
    """

    weight_nats: Mapping[str, Mapping[str, float]]

    def is_other_language(self, words: Iterable[str], language: str) -> bool:
        """Do the lower-cased words of a text speak for another of the known languages?

        No where `language` itself is not known.
        """
        weight = self.weight_nats.get(language, {})
        return sum(map(weight.get, words, repeat(0.0))) < -MARGIN_NATS


def languages_of(corpus: Corpus) -> LanguageProfile:
    """The profile of the languages of a corpus, learnt from its beginning."""
    languages = sorted(corpus.languages)
    aligned = align(corpus.paragraphs(), languages, Counter())
    return learn_languages(islice(aligned, _LEARNT_FROM_SENTENCES), languages)


def learn_languages(sentences: Iterable[AlignedSentence], languages: list[str]) -> LanguageProfile:
    """The profile of the words of each side, with add-half smoothing.

    Only words with a letter and at least five occurrences on some side enter. What few sides are in
    a wrong language hardly move the counts.
    """
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    for sentence in sentences:
        for language, count in counts.items():
            count.update(sentence.text[language].lower().split())
    frequent = sorted(
        {
            word
            for one in counts.values()
            for word, count in one.items()
            if count >= _LEAST_COUNT and any(map(str.isalpha, word))
        }
    )
    total = {
        language: count.total() + _SMOOTHING * len(frequent) for language, count in counts.items()
    }
    logprob = {
        language: [math.log((count[word] + _SMOOTHING) / total[language]) for word in frequent]
        for language, count in counts.items()
        if frequent
    }
    weights = {}
    for language in languages:
        others = [row for other, row in logprob.items() if other != language]
        weights[language] = {
            word: _limited(logprob[language][place] - max(row[place] for row in others))
            for place, word in enumerate(frequent)
            if others
        }
    return LanguageProfile(weights)


def _limited(weight_nats: float) -> float:
    return max(-_MOST_WEIGHT_NATS, min(_MOST_WEIGHT_NATS, weight_nats))


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

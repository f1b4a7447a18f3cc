"""The filters that training text passes, with a count for each."""

from __future__ import annotations

import logging
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
from pipeline.data.text.words import count_letter_characters, count_words, find_unspaced

_log = logging.getLogger(__name__)
_ASCII_LETTERS = string.ascii_letters.encode()
_MARKUP_OR_URL = re.compile(r"</?\w[^<>]*>|&#?\w+;|[{}\\]|\b(?:https?|ftp|file|mailto):|\bwww\.")
# Every match of the pattern contains one of these, and they are quick to look for.
_SIGNS_OF_MARKUP = ("<", "&", "{", "}", "\\", ":", "www.")

RULES = {
    "word_count": "words of the pivot side outside data.min_words to data.max_words",
    "letter_share": "a side with a smaller share of letters than data.min_letter_share",
    "markup_or_url": "a tag, an entity, a brace, a backslash or an address",
    "length_ratio": "one side over data.max_length_ratio times as many words as another, plus "
    "data.length_allowance_words",
    "untranslated": "two sides that are the same text",
    "other_language": "a side whose words speak for the language of another side",
    "duplicate": "a pivot side that was kept before",
}
# What `align` drops before these rules: units of a TMX file, or other paragraphs.
_ALL_LANGUAGES = "all_languages"
_COUNT_OF_RULE = {
    _ALL_LANGUAGES: "paragraphs_without_all_languages",
    **{rule: f"dropped_{rule}" for rule in RULES},
}
_SETTING = re.compile(r"data\.(\w+)")
_EXAMPLES, _EXAMPLE_CHARACTERS = 3, 100


@dataclass(frozen=True)
class CleaningRules:
    """Limits of cleaning.

    `min_words`, `max_words`: of the pivot side, which also identifies duplicates. `languages`:
    tells texts in a wrong language, if given. `keeps_untranslated`: the rules `untranslated` and
    `other_language` do not apply to two sides that are the same text. Words are those of
    `count_words`.
    """

    pivot: str
    min_words: int
    max_words: int
    min_letter_share: float
    max_length_ratio: float
    length_allowance_words: int
    languages: LanguageProfile | None = None
    keeps_untranslated: bool = False


def clean(
    sentences: Iterable[AlignedSentence], rules: CleaningRules, counts: Counter[str]
) -> Iterator[AlignedSentence]:
    """Yield the sentences that pass every filter, in order.

    Adds the numbers of sentences read, dropped by each of `RULES` and kept to `counts`. A sentence
    is counted under the first rule that it breaks.
    """
    for name in ("read", *(f"dropped_{rule}" for rule in RULES), "kept"):
        counts[name] += 0
    for sentence, rule in _judged(sentences, rules):
        counts["read"] += 1
        if rule is None:
            counts["kept"] += 1
            yield sentence
        else:
            counts[f"dropped_{rule}"] += 1


def strictest_rule(rules: CleaningRules, counts: Mapping[str, int]) -> str:
    """Name the rule that dropped most sentences, with its count and its settings.

    `counts` are those of `align` and `clean`. Empty if no rule dropped any.
    """
    rule, n_dropped = _strictest(counts)
    if not n_dropped:
        return ""
    if rule == _ALL_LANGUAGES:
        limits = "units or paragraphs that lack text in one of the languages"
    else:
        limits = _SETTING.sub(lambda match: f"{match[0]}={getattr(rules, match[1])}", RULES[rule])
    return f"the rule {rule} dropped {n_dropped} of {_n_read(counts)} sentences ({limits})"


def _strictest(counts: Mapping[str, int]) -> tuple[str, int]:
    """Return the rule that dropped most, and its count."""
    rule = max(_COUNT_OF_RULE, key=lambda rule: counts[_COUNT_OF_RULE[rule]])
    return rule, counts[_COUNT_OF_RULE[rule]]


def _n_read(counts: Mapping[str, int]) -> int:
    """Return the number of sentences; a paragraph that lacks a language counts as one."""
    return counts["read"] + counts[_COUNT_OF_RULE[_ALL_LANGUAGES]]


def warn_if_most_is_dropped(
    corpus: Corpus, languages: list[str], rules: CleaningRules, counts: Mapping[str, int]
) -> None:
    """Log a warning with examples if more than half of a corpus was dropped.

    `counts` are those of `align` and `clean`. The corpus is read again, up to the last example.
    """
    n_read = _n_read(counts)
    if 2 * counts["kept"] >= n_read:
        return
    examples = islice(_dropped(corpus, languages, rules, _strictest(counts)[0]), _EXAMPLES)
    _log.warning(
        "%s: %d of %d sentences were dropped; %s. Examples: %s",
        *(corpus.name, n_read - counts["kept"], n_read),
        *(strictest_rule(rules, counts), "; ".join(map(repr, examples))),
    )


def _dropped(
    corpus: Corpus, languages: list[str], rules: CleaningRules, rule: str
) -> Iterator[str]:
    """Yield the sides of what a rule dropped; with their languages if some are missing."""
    if rule == _ALL_LANGUAGES:
        for paragraph in corpus.paragraphs():
            sides = {language: paragraph.sentences.get(language) for language in languages}
            if not all(sides.values()):
                yield " / ".join(
                    f"{language}: {side[0][:_EXAMPLE_CHARACTERS] if side else '(no text)'}"
                    for language, side in sides.items()
                )
        return
    for sentence, broken in _judged(align(corpus.paragraphs(), languages, Counter()), rules):
        if broken == rule:
            yield " / ".join(side[:_EXAMPLE_CHARACTERS] for side in sentence.text.values())


def _judged(
    sentences: Iterable[AlignedSentence], rules: CleaningRules
) -> Iterator[tuple[AlignedSentence, str | None]]:
    """Yield each sentence with the first rule that it breaks, or None."""
    seen = SeenTexts()
    for sentence in sentences:
        rule = broken_rule(sentence.text, rules)
        if rule is None:
            text = sentence.text[rules.pivot].casefold()
            # So that an untranslated pair takes the place of no translated one.
            if rules.keeps_untranslated and is_untranslated(sentence.text):
                text += "\n"
            if not seen.add(text):
                rule = "duplicate"
        yield sentence, rule


def broken_rule(text: dict[str, str], rules: CleaningRules) -> str | None:
    """Return the first rule, other than `duplicate`, that a sentence breaks; None if it is fine."""
    words = {language: side.lower().split() for language, side in text.items()}
    pivot = rules.pivot
    if not rules.min_words <= _length_words(text[pivot], words[pivot]) <= rules.max_words:
        return "word_count"
    min_letter_share = rules.min_letter_share
    for side in text.values():
        if not _has_enough_letters(side, min_letter_share):
            return "letter_share"
    joined = " ".join(text.values())
    for sign in _SIGNS_OF_MARKUP:
        if sign in joined and any(map(_MARKUP_OR_URL.search, text.values())):
            return "markup_or_url"
    lengths = sorted(map(_length_words, text.values(), words.values()))
    if lengths[-1] > rules.max_length_ratio * lengths[0] + rules.length_allowance_words:
        return "length_ratio"
    if is_untranslated(text):
        return None if rules.keeps_untranslated else "untranslated"
    if rules.languages is not None:
        for language, side_words in words.items():
            if rules.languages.is_other_language(side_words, language):
                return "other_language"
    return None


def is_untranslated(text: Mapping[str, str]) -> bool:
    """Tell whether two sides are the same text, apart from upper and lower case."""
    return len({side.casefold() for side in text.values()}) < len(text)


def _length_words(text: str, pieces: list[str]) -> int:
    """Return `count_words` of a text, quickly if white space splits it into these pieces."""
    return len(pieces) if text.isascii() or not find_unspaced(text) else count_words(text)


def _has_enough_letters(text: str, min_share: float) -> bool:
    needed = min_share * len(text)
    # There are at least as many bytes that are not ASCII letters as characters that are not
    # letters, and counting bytes is faster.
    if text and len(text) - len(text.encode().translate(None, _ASCII_LETTERS)) >= needed:
        return True
    if not text or sum(map(str.isalpha, text)) >= needed:
        return bool(text)
    return not text.isascii() and count_letter_characters(text) >= needed


# Duplicates

_FIRST_SLOTS = 1 << 12


class SeenTexts:
    """A set of texts that keeps only 64-bit hashes, in one open-addressed array.

    40 million texts take 1 GiB instead of the 4 GiB of a Python set. The probability that any two
    of them collide is 0.00004. Hashes are the same in every process.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SLOTS))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, text: str) -> bool:
        return bool(self._slots[self._slot(_code(text))])

    def add(self, text: str) -> bool:
        """Add a text, and tell whether it was new."""
        code = _code(text)
        slot = self._slot(code)
        if self._slots[slot]:
            return False
        self._slots[slot] = code
        self._count += 1
        if 2 * self._count > len(self._slots):
            self._grow()
        return True

    def _slot(self, code: int) -> int:
        """Return the slot of a hash, or the empty one where it belongs."""
        slots = self._slots
        last = len(slots) - 1
        slot = code & last
        while slots[slot] not in (0, code):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        codes = self._slots
        self._slots = array("Q", bytes(2 * 8 * len(codes)))
        for code in codes:
            if code:
                self._slots[self._slot(code)] = code


def _code(text: str) -> int:
    """Return the hash of a text; never 0, which marks an empty slot."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) or 1


# Wrong languages

_PROFILE_SENTENCES = 50_000
# A text is in another language if that makes its words e^4 = 55 times as likely.
MARGIN_NATS = 4.0
# A single word cannot decide, because good sentences contain foreign names and terms.
_MAX_WEIGHT_NATS = 3.0
_MIN_COUNT = 5
_SMOOTHING = 0.5


@dataclass(frozen=True)
class LanguageProfile:
    """How strongly each word indicates a language.

    `weight_nats`: language -> word -> log-prob there minus the largest log-prob in the other
    languages. Rare words have no weight, so that names and new terms decide nothing.
    """

    weight_nats: Mapping[str, Mapping[str, float]]

    def is_other_language(self, words: Iterable[str], language: str) -> bool:
        """Tell whether lower-cased words indicate another language than `language`.

        Always false for an unknown language.
        """
        weight = self.weight_nats.get(language, {})
        return sum(map(weight.get, words, repeat(0.0))) < -MARGIN_NATS


def learn_profile(corpus: Corpus) -> LanguageProfile:
    """Learn the profile of a corpus' languages from its first sentences."""
    languages = sorted(corpus.languages)
    aligned = align(corpus.paragraphs(), languages, Counter())
    return profile_of(islice(aligned, _PROFILE_SENTENCES), languages)


def profile_of(sentences: Iterable[AlignedSentence], languages: list[str]) -> LanguageProfile:
    """Learn a profile from sentences, with add-half smoothing.

    Only words with a letter and at least five occurrences in one language are used, so that a few
    sides in a wrong language hardly change the counts.
    """
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    for sentence in sentences:
        for language, count in counts.items():
            count.update(sentence.text[language].lower().split())
    frequent = sorted(
        {
            word
            for count in counts.values()
            for word, n_occurrence in count.items()
            if n_occurrence >= _MIN_COUNT and any(map(str.isalpha, word))
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
        rivals = [row for rival, row in logprob.items() if rival != language]
        weights[language] = {
            word: _clipped(logprob[language][index] - max(row[index] for row in rivals))
            for index, word in enumerate(frequent)
            if rivals
        }
    return LanguageProfile(weights)


def _clipped(weight_nats: float) -> float:
    return max(-_MAX_WEIGHT_NATS, min(_MAX_WEIGHT_NATS, weight_nats))


# Near-duplicates of held-out sentences

_TABULATED_WORDS = 100
_WORD = re.compile(r"\w+")


class NearDuplicates:
    """An index of held-out sentences, to find texts that overlap with one of them.

    The overlap is the Jaccard index of the sets of lower-cased words, 0 < `jaccard` <= 1. Two sets
    with enough overlap share one of their rarest words, so that only those are indexed.
    """

    def __init__(self, held_out: Sequence[str], jaccard: float) -> None:
        self._jaccard = jaccard
        self._min_shared = [self._compute_min_shared(n_word) for n_word in range(_TABULATED_WORDS)]
        held_words = [_words(text) for text in held_out]
        frequency = Counter(word for words in held_words for word in words)
        by_rarity = sorted(frequency, key=lambda word: (frequency[word], word))
        # From 1, the rarest word, so that `filter` drops unknown words.
        self._rank = {word: rank for rank, word in enumerate(by_rarity, 1)}
        self._with_word: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
        for words in held_words:
            ranks = sorted(self._rank[word] for word in words)
            for rank in self._rarest(ranks, len(words)):
                self._with_word[rank].append(frozenset(ranks))

    def has_near(self, text: str) -> bool:
        """Tell whether the overlap of `text` with any held-out sentence is at least `jaccard`."""
        words = _words(text)
        ranks = sorted(filter(None, map(self._rank.get, words)))
        rarest = self._rarest(ranks, len(words))
        candidates = [held for rank in rarest for held in self._with_word.get(rank, ())]
        known = frozenset(ranks) if candidates else frozenset()
        for held in candidates:
            n_shared = len(known & held)
            if n_shared / (len(words) + len(held) - n_shared) >= self._jaccard:
                return True
        return False

    def _rarest(self, ranks: list[int], n_word: int) -> list[int]:
        """Return the rarest words of a text; every match shares at least one of them."""
        is_tabulated = n_word < len(self._min_shared)
        n_shared = self._min_shared[n_word] if is_tabulated else self._compute_min_shared(n_word)
        return ranks[: max(0, len(ranks) - n_shared + 1)]

    def _compute_min_shared(self, n_word: int) -> int:
        """Return how many words a text must at least share with a match."""
        # Rounded first, so that a rounding error in 0.8 * 5 cannot give 5 instead of 4.
        return max(1, math.ceil(round(self._jaccard * n_word, 9)))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))

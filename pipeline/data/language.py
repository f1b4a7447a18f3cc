"""Whether a text is in the language that it should be in, by words of the corpus' own sides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, repeat

from pipeline.data.corpus import AlignedSentence, Corpus, align

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

"""Copies: training sentences repeated with one text on both sides, which are SYNTHETIC noise.

Corpora that are collected from the web hold pairs whose target is a copy of the source. Sources:
Ott et al., ICML 2018, "Analyzing uncertainty in neural machine translation"; Khayrallah and Koehn,
WNMT 2018, "On the impact of various types of noise on neural machine translation".
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pipeline.data.text.cleaning import CleaningRules, NearDuplicates, SeenTexts, broken_rule
from pipeline.data.text.corpus import (
    AlignedSentence,
    Corpus,
    SpooledSentences,
    align,
    seeded_hash,
)
from pipeline.errors import ConfigError
from pipeline.run.settings import CopiesConfig

_log = logging.getLogger(__name__)


def third_language(corpus: Corpus, pair: tuple[str, str]) -> str:
    """Return the language that a corpus has beside a pair; raises ConfigError if not just one."""
    others = sorted(corpus.languages - {*pair})
    if len(others) != 1:
        found = ", ".join([*others, *corpus.too_rare.values()])
        raise ConfigError(
            f"data.copies.third: {corpus.name} must have one more language than {pair[0]} and "
            f"{pair[1]} (got {found or 'none'}). Set it to 0, or give the text of one other "
            f"language that a test set of the task has (task.test_sets.NAME.language)."
        )
    return others[0]


@dataclass(frozen=True)
class ThirdSides:
    """The sides of training sentences in a third language, as far as they are fit for training.

    `train`: the training sentences, which are found in `corpus` again. `rules`: those that a
    sentence in all three languages must pass. `held_out`: index of the held-out text in
    `language`. The subwords are learnt without these sides, so that one with a character that no
    training sentence has is not fit.
    """

    language: str
    corpus: Corpus
    train: SpooledSentences
    rules: CleaningRules
    held_out: NearDuplicates

    def sentences(self) -> Callable[[], Iterator[AlignedSentence]]:
        """Return a function that reads the training sentences that have such a side, with it."""
        trained_on, characters = SeenTexts(), set[str]()
        for sentence in self.train:
            trained_on.add(self._key(sentence))
            characters.update(*sentence.text.values())
        languages = sorted({*self.train.languages, self.language})

        def read() -> Iterator[AlignedSentence]:
            used = SeenTexts()
            for sentence in align(self.corpus.paragraphs(), languages, Counter()):
                side, key = sentence.text[self.language], self._key(sentence)
                if (
                    key in trained_on
                    and characters.issuperset(side)
                    and broken_rule(sentence.text, self.rules) is None
                    and not self.held_out.has_near(side)
                    and used.add(key)
                ):
                    yield sentence

        return read

    def _key(self, sentence: AlignedSentence) -> str:
        return "\n".join([sentence.page, *_pair_of(sentence, self.train)])


def make_copies(
    shares: CopiesConfig,
    pair: tuple[str, str],
    train: SpooledSentences,
    third: ThirdSides | None,
    seed: int,
) -> dict[str, SpooledSentences]:
    """Return the texts to copy: kind (`source`, `target`, `third`) -> sentences with one side.

    A kind is left out if its share is 0. There are share * (number of training sentences) of each,
    rounded: those with the first seeded hashes of kind and sentence, in the order of the corpus. A
    larger share contains the smaller one, and kinds are drawn independently. Raises ConfigError if
    too few sentences have a side in the third language.
    """

    def hash_of(kind: str) -> Callable[[AlignedSentence], int]:
        return lambda sentence: seeded_hash(seed, kind, *_pair_of(sentence, train))

    copies = {}
    for kind, share, language in (
        ("source", shares.source, pair[0]),
        ("target", shares.target, pair[1]),
        ("third", shares.third, third.language if third else ""),
    ):
        if not share:
            continue
        read = third.sentences() if third and kind == "third" else train.__iter__
        n_copy = round(share * len(train))
        copies[kind] = train.beside(f"copies_of_{kind}", [language])
        drawn = _first(read, n_copy, hash_of(kind))
        copies[kind].write(
            AlignedSentence(sentence.page, {language: sentence.text[language]})
            for sentence in drawn
        )
        if len(copies[kind]) < n_copy:
            raise ConfigError(
                f"data.copies.{kind}: {share} of {len(train)} training sentences are {n_copy}, and "
                f"{len(copies[kind])} have a usable side in {language}. Decrease it."
            )
        _log.info(
            "SYNTHETIC noise: %d of %d training sentences are repeated with their %s side (%s) as "
            "source and target",
            *(n_copy, len(train), kind, language),
        )
    return copies


def _pair_of(sentence: AlignedSentence, train: SpooledSentences) -> list[str]:
    return [sentence.text[language] for language in train.languages]


def _first(
    read: Callable[[], Iterable[AlignedSentence]],
    n_sentence: int,
    hash_of: Callable[[AlignedSentence], int],
) -> Iterator[AlignedSentence]:
    """Yield the sentences with the first hashes, in order; memory holds only their hashes."""
    largest = max(heapq.nsmallest(n_sentence, map(hash_of, read())), default=-1)
    return (sentence for sentence in read() if hash_of(sentence) <= largest)

"""Sentences of the test sets that come from another corpus than the training text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pipeline.config import DataConfig, TestSetConfig
from pipeline.data.clean import CleaningRules, clean
from pipeline.data.corpus import AlignedSentence, Corpus, align
from pipeline.data.debian_reference import read_debian_reference
from pipeline.data.game_dialogue import read_game_dialogue
from pipeline.data.khresmoi import read_khresmoi
from pipeline.data.language import languages_of
from pipeline.data.other_pair import read_other_pair
from pipeline.data.set_settings import needed
from pipeline.data.split import hold_out
from pipeline.data.transcripts import read_transcripts
from pipeline.data.user_files import read_user_files

KINDS = ("debian_reference", "spoken", "files")


@dataclass(frozen=True)
class OtherSet:
    """The sentences of a set, the corpus that they are from, and the counts of every step."""

    corpus: Corpus
    sentences: list[AlignedSentence]
    counts: dict[str, int]


def make_other_set(
    role: str,
    test_set: TestSetConfig,
    data: DataConfig,
    languages: list[str],
    rules: CleaningRules,
    seed: int,
) -> OtherSet | str:
    """The sentences of a set whose kind is one of `KINDS`; or the reason why it is absent.

    `languages`: source, target, then further ones that the sides should have. The user's own files
    are taken as they are, line by line; all else is cleaned by `rules`, and whole pages are drawn
    until data.test_sentences are there. Raises ConfigError where a setting of the set is missing,
    DataError or MachineError where its corpus cannot be had.
    """
    counts: Counter[str] = Counter()
    given = _given_corpus(role, test_set, data, languages)
    if given is not None:
        return OtherSet(given, as_given(given, data.test_sentences, counts), dict(counts))
    corpus = _corpus_to_draw_from(role, test_set, data, languages)
    if isinstance(corpus, str):
        return corpus
    aligned = align(corpus.paragraphs(), sorted(corpus.languages), counts)
    # Its own words: what is rare in the training text may be common here.
    own = replace(rules, languages=languages_of(corpus))
    kept = hold_out(clean(aligned, own, counts), data.test_sentences, 0, seed).test
    counts["sentences_in_the_set"] = len(kept)
    return OtherSet(corpus, kept, dict(counts))


def set_of_other_pair(data: DataConfig, pair: tuple[str, str]) -> OtherSet | str:
    """The sentences of sacrebleu's `data.test` for another pair; or why they are absent."""
    corpus = read_other_pair(data, pair)
    if isinstance(corpus, str):
        return corpus
    counts: Counter[str] = Counter()
    sentences = as_given(corpus, data.test_sentences, counts)
    return OtherSet(corpus, sentences, dict(counts))


def as_given(corpus: Corpus, most: int, counts: Counter[str]) -> list[AlignedSentence]:
    """The first sentences of a corpus that is a test set already: blank ones and repeats too.

    Adds to `counts` how many were read, and how many were left out as more than `most`.
    """
    sentences = align(corpus.paragraphs(), sorted(corpus.languages), counts)
    kept = list(islice(sentences, most))
    counts["dropped_over_the_most"] = sum(1 for _ in sentences)
    return kept


def _given_corpus(
    role: str, test_set: TestSetConfig, data: DataConfig, languages: list[str]
) -> Corpus | None:
    """A corpus that is a test set already; None where sentences are to be drawn from one."""
    if test_set.kind == "files":
        path = needed(role, "path", test_set.path)
        return read_user_files(test_set.corpus, path, languages[:1], languages[1:2])
    if test_set.kind == "debian_reference" and data.khresmoi is not None:
        return read_khresmoi(Path(data.khresmoi), languages[:2])
    return None


def _corpus_to_draw_from(
    role: str, test_set: TestSetConfig, data: DataConfig, languages: list[str]
) -> Corpus | str:
    """The corpus of a set; or the reason why there is none."""
    if test_set.kind == "debian_reference":
        return read_debian_reference(data, sorted(languages))
    subset = needed(role, "librispeech_subset", test_set.librispeech_subset)
    if data.librispeech is not None:
        if languages[0] != "en":
            return f"LibriSpeech is English and the task translates from {languages[0]}"
        return read_transcripts(Path(data.librispeech), subset)
    if test_set.stand_in:
        return read_game_dialogue(data, sorted(languages))
    return f"data.librispeech names no folder with LibriSpeech's {subset}"

"""Sentences of the test sets that come from another corpus than the training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pipeline.data.test_set_kinds import needed
from pipeline.data.text.cleaning import CleaningRules, clean, languages_of
from pipeline.data.text.corpus import AlignedSentence, Corpus, align, hold_out
from pipeline.data.text.debian_reference import read_debian_reference
from pipeline.data.text.files import read_user_files
from pipeline.data.text.game_dialogue import read_game_dialogue
from pipeline.data.text.libreoffice import read_libreoffice
from pipeline.data.text.published_corpora import (
    read_khresmoi,
    read_other_pair,
    read_sacrebleu,
    read_transcripts,
)
from pipeline.data.text.task_units import is_imported
from pipeline.run.settings import DataConfig, TestSetConfig

# Every pair holds out the same pages, and finds its test sentences in all of these languages.
SHARED_LANGUAGES = frozenset({"de", "en", "fr"})


@dataclass(frozen=True)
class TaskText:
    """The text to train on; dev and test sets of their own, or None: held out of the former.

    `train` is None where nothing is trained and both sets are of their own.
    """

    train: Corpus | None
    dev: Corpus | None = None
    test: Corpus | None = None

    @property
    def main(self) -> Corpus:
        """The corpus that the task is of: the text to train on or, without it, to test on."""
        corpus = self.train or self.test
        assert corpus is not None  # the configuration was checked
        return corpus

    @property
    def test_languages(self) -> frozenset[str]:
        """The languages that every test sentence is in."""
        return (self.test or self.main).languages

    @property
    def test_name(self) -> str:
        """What the corpus of the test sentences is called."""
        return (self.test or self.main).name


def read_task_text(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    """The text that `data.source` names, in the pair and as far as may be in `languages`.

    Raises DataError where a file breaks a rule; MachineError where a package cannot be had.
    """
    return _SOURCES[data.source](data, pair, languages)


def _libreoffice(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    return TaskText(read_libreoffice(data, sorted(SHARED_LANGUAGES | {*pair} | languages)))


def _files(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    def read(name: str, where: str | None) -> Corpus | None:
        return _users_text(name, where, pair, languages)

    train = read(f"{data.corpus}, to train on", _where_to_train(data))
    return TaskText(train, read(f"{data.corpus}, dev", data.dev), read(data.corpus, data.test))


def _sacrebleu(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    train = _users_text(f"{data.corpus}, to train on", _where_to_train(data), pair, languages)
    sets = [None if name is None else read_sacrebleu(name, pair) for name in (data.dev, data.test)]
    return TaskText(train, *sets)


def _where_to_train(data: DataConfig) -> str | None:
    """Text that nothing is trained on is read only where a set is to be held out of it."""
    is_needed = not is_imported(data) or data.dev is None or data.test is None
    return data.train if is_needed else None


def _users_text(
    name: str, where: str | None, pair: tuple[str, str], languages: set[str]
) -> Corpus | None:
    others = sorted(languages - {*pair})
    return None if where is None else read_user_files(name, where, list(pair), others)


_SOURCES: dict[str, Callable[[DataConfig, tuple[str, str], set[str]], TaskText]] = {
    "libreoffice": _libreoffice,
    "files": _files,
    "sacrebleu": _sacrebleu,
}

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

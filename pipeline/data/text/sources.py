"""The sources of text of a translation task: training text, and corpora of test sets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pipeline.data.task_subwords import is_imported
from pipeline.data.text.cleaning import CleaningRules, clean, learn_profile
from pipeline.data.text.corpus import AlignedSentence, Corpus, align, hold_out
from pipeline.data.text.debian_corpora import (
    read_debian_reference,
    read_game_dialogue,
    read_libreoffice,
)
from pipeline.data.text.published_corpora import (
    read_khresmoi,
    read_other_pair,
    read_sacrebleu,
    read_transcripts,
)
from pipeline.data.text.user_files import is_empty, read_user_files
from pipeline.run.settings import DataConfig, TestSetConfig, implementation
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

_log = logging.getLogger(__name__)

# The paper's language pairs, in any direction, hold out the same pages. Their test sentences exist
# in these languages.
_LANGUAGES_OF_THE_PAPER = frozenset({"de", "en", "fr"})


@dataclass(frozen=True)
class TaskText:
    """The training text, and separate dev and test sets; None if they are held out of it.

    `train` is None if nothing is trained and both sets are separate.
    """

    train: Corpus | None
    dev: Corpus | None = None
    test: Corpus | None = None

    @property
    def main(self) -> Corpus:
        """The corpus that the task is named after: the training text or, without it, the test."""
        corpus = self.train or self.test
        assert corpus is not None  # ensured by the checks of the configuration
        return corpus


def read_task_text(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    """Read the text that `data.source` names, in the pair and the other `languages` it has.

    Raises DataError if a file is malformed, and MachineError if a package is not available.
    """
    return _SOURCES[data.source](data, pair, languages)


def shared_languages(pair: tuple[str, str]) -> frozenset[str]:
    """Return the languages of all test sentences from Debian packages, whatever the task needs."""
    is_of_paper = _LANGUAGES_OF_THE_PAPER.issuperset(pair)
    return _LANGUAGES_OF_THE_PAPER if is_of_paper else frozenset(pair)


def _libreoffice(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    return TaskText(read_libreoffice(data, sorted(shared_languages(pair) | languages)))


def _files(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    def read(name: str, where: str | None) -> Corpus | None:
        return _read_optional(name, where, pair, languages)

    # Text that the test sentences are held out of is not only there to train on.
    training = data.corpus if data.test is None else f"{data.corpus}, to train on"
    train = read(training, _training_text(data))
    return TaskText(train, read(f"{data.corpus}, dev", data.dev), read(data.corpus, data.test))


def _sacrebleu(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    train = _read_optional(f"{data.corpus}, to train on", _training_text(data), pair, languages)
    sets = [None if name is None else read_sacrebleu(name, pair) for name in (data.dev, data.test)]
    return TaskText(train, *sets)


def _training_text(data: DataConfig) -> str | None:
    """Return data.train, or None if it is needed neither for training nor to hold sets out."""
    is_needed = not is_imported(data) or data.dev is None or data.test is None
    return data.train if is_needed else None


def _read_optional(
    name: str, where: str | None, pair: tuple[str, str], languages: set[str]
) -> Corpus | None:
    if where is None:
        return None
    return read_user_files(name, where, list(pair), sorted(languages - {*pair}))


_SOURCES: dict[str, Callable[[DataConfig, tuple[str, str], set[str]], TaskText]] = {
    "libreoffice": _libreoffice,
    "files": _files,
    "sacrebleu": _sacrebleu,
}


# Test sets whose kind has a corpus of its own


@dataclass(frozen=True)
class OwnCorpus:
    """The corpus of a test set, used line by line if `is_test_set`; else sentences are drawn."""

    corpus: Corpus
    is_test_set: bool


@dataclass(frozen=True)
class OwnSentences:
    """The sentences of a test set that has a corpus of its own, and the counts of each step."""

    corpus: Corpus
    sentences: list[AlignedSentence]
    counts: dict[str, int]


def own_sentences(
    test_set: TestSetConfig, data: DataConfig, languages: list[str], rules: CleaningRules, seed: int
) -> OwnSentences | str:
    """Read the sentences of a test set that has its own corpus, or return why it is absent.

    `languages` are source, target, and others that the sentences should have. A corpus that is a
    test set is used line by line. Otherwise text is cleaned by `rules`, and whole pages are drawn
    until there are data.test_sentences. Raises DataError or MachineError if the corpus cannot be
    read.
    """
    kind = KINDS_OF_TEST_SETS["translation", test_set.kind]
    assert kind.corpus is not None
    own = implementation(kind.corpus, f"corpus of kind {kind.name}")(test_set, data, languages)
    if isinstance(own, str):
        return own
    counts: Counter[str] = Counter()
    corpus: Corpus = own.corpus
    if own.is_test_set:
        sentences = first_sentences(corpus, data.test_sentences, counts)
        return OwnSentences(corpus, sentences, {**corpus.counts, **counts})
    aligned = align(corpus.paragraphs(), sorted(corpus.languages), counts)
    # The profile is learnt from this corpus, because its common words may be rare in training.
    own_rules = replace(rules, languages=learn_profile(corpus))
    cleaned = clean(aligned, own_rules, counts)
    drawn = hold_out(cleaned, data.test_sentences, 0, page_limit(data, corpus), seed)
    counts["dropped_over_max_sentences_per_page"] = drawn.n_over_page_limit
    counts["sentences_in_the_set"] = len(drawn.test)
    return OwnSentences(corpus, drawn.test, dict(counts))


def other_pair_sentences(data: DataConfig, pair: tuple[str, str]) -> OwnSentences | str:
    """Read sacrebleu's `data.test` of another language pair, or return why it is absent."""
    corpus = read_other_pair(data, pair)
    if isinstance(corpus, str):
        return corpus
    counts: Counter[str] = Counter()
    sentences = first_sentences(corpus, data.test_sentences, counts)
    return OwnSentences(corpus, sentences, {**corpus.counts, **counts})


def page_limit(data: DataConfig, corpus: Corpus) -> int | None:
    """Return the number of sentences that a set may draw from one page of a corpus; None: all."""
    # Blocks of lines are no documents, and holding out more of them would cost training text.
    return data.max_sentences_per_page if corpus.has_documents else None


def first_sentences(
    corpus: Corpus, max_sentences: int, counts: Counter[str]
) -> list[AlignedSentence]:
    """Return the first sentences of a test set unchanged, including blank and repeated ones.

    Adds the numbers of sentences read and left out to `counts`. Logs a warning if more than half of
    the units of a TMX file lack a language.
    """
    languages = sorted(corpus.languages)
    sentences = align(corpus.paragraphs(), languages, counts)
    kept = list(islice(sentences, max_sentences))
    counts["dropped_over_the_most"] = sum(1 for _ in sentences)
    n_lacking, n_read = counts["paragraphs_without_all_languages"], counts["paragraphs_read"]
    if 2 * n_lacking > n_read:
        _log.warning(
            "%s: %d of %d units are left out, since they lack text in one of %s",
            *(corpus.name, n_lacking, n_read, ", ".join(languages)),
        )
    return kept


# The functions that the registry of kinds names


def files_corpus(
    test_set: TestSetConfig, data: DataConfig, languages: list[str]
) -> OwnCorpus | str:
    """Read the user's own files; the target language may be missing."""
    assert test_set.path is not None  # ensured by the checks of the configuration
    if is_empty(test_set.path, languages[:2]):
        return f"{test_set.path} has no text"
    corpus = read_user_files(test_set.corpus, test_set.path, languages[:1], languages[1:2])
    return OwnCorpus(corpus, is_test_set=True)


def debian_reference_corpus(
    test_set: TestSetConfig, data: DataConfig, languages: list[str]
) -> OwnCorpus:
    """Read Khresmoi-Summary if data.khresmoi names its folder, else Debian Reference."""
    if data.khresmoi is not None:
        return OwnCorpus(read_khresmoi(Path(data.khresmoi), languages[:2]), is_test_set=True)
    return OwnCorpus(read_debian_reference(data, sorted(languages)), is_test_set=False)


def spoken_corpus(
    test_set: TestSetConfig, data: DataConfig, languages: list[str]
) -> OwnCorpus | str:
    """Read LibriSpeech's transcripts if data.librispeech names its folder, else game dialogue."""
    subset = test_set.librispeech_subset
    assert subset is not None  # ensured by the checks of the configuration
    if data.librispeech is not None:
        if languages[0] != "en":
            return f"LibriSpeech is English and the task translates from {languages[0]}"
        return OwnCorpus(read_transcripts(Path(data.librispeech), subset), is_test_set=False)
    if test_set.stand_in:
        return OwnCorpus(read_game_dialogue(data, sorted(languages)), is_test_set=False)
    return f"data.librispeech names no folder with LibriSpeech's {subset}"

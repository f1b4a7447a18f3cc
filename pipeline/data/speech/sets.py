"""The corpora of a speech task: its training and dev sets, and the kinds of its test sets."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random

from pipeline.data.debian_packages import Package, origin, package_files, packages_of
from pipeline.data.speech.corpus import SpeechCorpus, Utterance, merged
from pipeline.data.speech.espeak import Espeak, find_espeak
from pipeline.data.speech.layouts import read_speech
from pipeline.data.speech.synthetic import (
    command_corpus,
    dialogue_corpus,
    harder_command_corpus,
    part_of,
)
from pipeline.errors import DataError, MachineError
from pipeline.run.files import complete_folder
from pipeline.run.settings import DataConfig, TaskConfig, TestSetConfig, implementation
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpeechSets:
    """The corpora of a task besides that of training; `dev` is None if there is none.

    `test`: name -> corpus. `absent`: name -> why there is no such set.
    """

    dev: SpeechCorpus | None
    test: dict[str, SpeechCorpus]
    absent: dict[str, str]


def make_speech_sets(source: SpeechSource, task: TaskConfig) -> SpeechSets:
    """Read or synthesise the corpus of each set, no larger than the settings allow.

    Raises DataError or MachineError if a corpus is not available.
    """
    sets = SpeechSets(source.dev(), {}, {})
    for name, test_set in task.test_sets.items():
        kind = KINDS_OF_TEST_SETS["speech", test_set.kind]
        assert kind.corpus is not None
        corpus = implementation(kind.corpus, f"corpus of kind {kind.name}")(test_set, source)
        if isinstance(corpus, str):
            sets.absent[name] = corpus
            _log.warning("test set %s is absent: %s", name, corpus)
        else:
            sets.test[name] = _sampled(corpus, source.data.test_sentences, f"{source.seed}:{name}")
    return sets


class SpeechSource:
    """The source of speech: the user's own corpora, or commands that espeak-ng reads."""

    def __init__(self, data: DataConfig, seed: int, language: str) -> None:
        self.data = data
        self.language = language
        self.speech = data.speech
        self.seed = seed
        self.is_synthetic = not data.speech.train
        self.is_trained_on = data.units.name == "learnt"
        self._held_out = {"train"}
        self._held_out |= {"dev"} if not self.speech.dev else set()
        self._held_out |= {"test"} if self.speech.test is None else set()

    @cached_property
    def espeak(self) -> Espeak:
        """The synthesiser; the search for it starts at the first use."""
        return find_espeak(self.data)

    @cached_property
    def train(self) -> SpeechCorpus:
        """Return the training set."""
        max_utterances = self.data.train_sentences
        if self.is_synthetic:
            n_command = min(self.speech.commands, max_utterances or self.speech.commands)
            return self._commands("train", n_command)
        corpus = self._users_part("train")
        if max_utterances is None:
            return corpus
        return _sampled(corpus, max_utterances, f"{self.seed}:train")

    def dev(self) -> SpeechCorpus | None:
        """Return the dev set; None if nothing is trained and the user has none."""
        max_utterances = self.data.dev_sentences
        if self.speech.dev:
            corpus = self.read(*self.speech.dev)
        elif not self.is_synthetic:
            corpus = self._users_part("dev")
        elif self.is_trained_on:
            return self._commands("dev", max_utterances)
        else:
            return None
        return _sampled(corpus, max_utterances, f"{self.seed}:dev")

    def test(self) -> SpeechCorpus:
        """Return the test set that is like the training set."""
        if self.is_synthetic:
            return self._commands("test", self.data.test_sentences)
        return self.read(self.speech.test) if self.speech.test else self._users_part("test")

    def read(self, *paths: str) -> SpeechCorpus:
        """Read the user's own corpora as one."""
        name, language = self.speech.corpus, self.language
        return merged([read_speech(Path(path), name, language) for path in paths])

    def _commands(self, part: str, n_utterance: int) -> SpeechCorpus:
        return command_corpus(self.data, part, n_utterance, self.seed, self.espeak)

    def _users_part(self, part: str) -> SpeechCorpus:
        """Return the utterances of the training corpora whose words hash to a part.

        The utterances of a part that has a corpus of its own go to the training set. What the
        reader left out is recorded with the training set, and not once per part; if nothing is
        trained, with each part.
        """
        corpus = self._users_corpus
        kept = []
        for utterance in corpus.utterances:
            drawn = part_of(utterance.reference or utterance.source)
            if (drawn if drawn in self._held_out else "train") == part:
                kept.append(utterance)
        left_out = corpus.left_out if part == "train" or not self.is_trained_on else {}
        return replace(corpus, utterances=kept, left_out=left_out)

    @cached_property
    def _users_corpus(self) -> SpeechCorpus:
        return self.read(*self.speech.train)


def _sampled(corpus: SpeechCorpus, max_utterances: int, seed: str) -> SpeechCorpus:
    """Return a random sample of at most `max_utterances` utterances, in the corpus's order."""
    if len(corpus.utterances) <= max_utterances:
        return corpus
    indices = sorted(Random(seed).sample(range(len(corpus.utterances)), max_utterances))
    return replace(corpus, utterances=[corpus.utterances[index] for index in indices])


# The functions of the registry of kinds of test sets


def held_out_corpus(_: TestSetConfig, source: SpeechSource) -> SpeechCorpus:
    """Return speech like the training speech: data.speech.test, or utterances held out of it."""
    return source.test()


def harder_corpus(_: TestSetConfig, source: SpeechSource) -> SpeechCorpus | str:
    """Return data.speech.test_other, or commands in far voices with noise."""
    data = source.data
    if source.is_synthetic:
        return harder_command_corpus(data, data.test_sentences, source.seed, source.espeak)
    if source.speech.test_other is None:
        return "data.speech.test_other names no corpus"
    return source.read(source.speech.test_other)


def meetings_corpus(test_set: TestSetConfig, source: SpeechSource) -> SpeechCorpus:
    """Return AMI if data.speech.ami names its folder, else synthesised game dialogue.

    The dialogue shares no text with the training speech.
    """
    data, name = source.data, test_set.corpus
    if source.speech.ami is not None:
        return read_speech(Path(source.speech.ami), name, source.language)
    trained: set[str | None] = set()
    if source.is_trained_on:
        trained = {utterance.reference for utterance in source.train.utterances}
    return dialogue_corpus(data, data.test_sentences, source.seed, name, source.espeak, trained)


def other_language_corpus(test_set: TestSetConfig, source: SpeechSource) -> SpeechCorpus | str:
    """Return Common Voice if data.speech.common_voice names it, else telephone prompts."""
    if source.speech.common_voice is not None:
        path = Path(source.speech.common_voice)
        return read_speech(path, test_set.corpus, test_set.language or source.language)
    return prompts_corpus(test_set, source)


def prompts_corpus(test_set: TestSetConfig, source: SpeechSource) -> SpeechCorpus | str:
    """Return telephone prompts in the language of the set."""
    language = test_set.language
    assert language is not None  # ensured by the checks of the configuration
    if language not in PROMPT_LANGUAGES:
        available = " and ".join(PROMPT_LANGUAGES)
        return f"there are telephone prompts in {available} alone, not in {language}"
    try:
        return read_prompts(source.data, language, test_set.corpus)
    except MachineError as error:
        if source.is_synthetic:
            raise
        # The user's own corpora need no package, and a cluster may have neither apt nor network.
        _log.warning("%s: %s", test_set.corpus, error)
        return f"the package of telephone prompts in {language} cannot be had on this machine"


def files_corpus(test_set: TestSetConfig, source: SpeechSource) -> SpeechCorpus:
    """Read the user's own corpus at the path of the set."""
    assert test_set.path is not None  # ensured by the checks of the configuration
    language = test_set.language or source.language
    return read_speech(Path(test_set.path), test_set.corpus, language)


# Telephone prompts

PROMPT_LANGUAGES = ("en", "fr")
_SOUNDS = "usr/share/asterisk/sounds/"
_SILENCE = "silence"


def read_prompts(data: DataConfig, language: str, name: str) -> SpeechCorpus:
    """Read the Asterisk prompts in one of `PROMPT_LANGUAGES`, without recordings of silence.

    One speaker reads all of them, so that each recording is a group of its own. They are unpacked
    in data.downloads. Raises MachineError if the package is not available, and DataError if it
    contains no prompt.
    """
    downloads = Path(data.downloads)
    (package,) = packages_of(data, [f"asterisk-core-sounds-{language}-wav"])
    unpacked = downloads / f"{package.name}-{package.sha256[:16]}"
    if not unpacked.is_dir():
        _unpack(package, unpacked)
    files = sorted(path.relative_to(unpacked) for path in unpacked.rglob("*.wav"))
    spoken = [path for path in files if _SILENCE not in path.parts]
    if not spoken:
        raise DataError(f"{package.path}: no prompts below {_SOUNDS}. Use another version.")
    return SpeechCorpus(
        name,
        licence="CC-BY-SA-3.0",
        domain="telephone prompts",
        folder=unpacked,
        utterances=[Utterance(path.as_posix(), None, group=path.as_posix()) for path in spoken],
        packages=origin([package]),
        left_out={path.as_posix(): "silence" for path in files if path not in spoken},
    )


def _unpack(package: Package, target: Path) -> None:
    with complete_folder(target) as folder:
        for path, content in package_files(package, _SOUNDS, ".wav"):
            _, *below_voice = Path(path).parts  # there is one voice only
            if not below_voice or ".." in below_voice:
                raise DataError(
                    f"{package.path}: contains an unsafe path ({path}). Use the original package."
                )
            file = folder.joinpath(*below_voice)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

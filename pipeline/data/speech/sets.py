"""Which corpus each set of a speech task is made of."""

from __future__ import annotations

import logging
from collections.abc import Callable
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
from pipeline.data.test_set_kinds import needed
from pipeline.errors import DataError, MachineError
from pipeline.run.files import complete_folder
from pipeline.run.settings import DataConfig, TaskConfig, TestSetConfig

LANGUAGES = ("en", "fr")
_SOUNDS = "usr/share/asterisk/sounds/"
_SILENCE = "silence"


def read_prompts(data: DataConfig, language: str, name: str) -> SpeechCorpus:
    """The prompts in one of `LANGUAGES`, unpacked in the cache; recordings of silence left out.

    Raises MachineError where the package cannot be had, DataError where it holds no prompt.
    """
    downloads = Path(data.downloads)
    (package,) = packages_of(data, [f"asterisk-core-sounds-{language}-wav"])
    unpacked = downloads / f"{package.name}-{package.sha256[:16]}"
    if not unpacked.is_dir():
        _unpack(package, unpacked)
    files = sorted(path.relative_to(unpacked) for path in unpacked.rglob("*.wav"))
    spoken = [path for path in files if _SILENCE not in path.parts]
    if not spoken:
        raise DataError(f"{package.path} must hold prompts below {_SOUNDS}, got none")
    return SpeechCorpus(
        name,
        licence="CC-BY-SA-3.0",
        domain="telephone prompts",
        folder=unpacked,
        utterances=[Utterance(path.as_posix(), None) for path in spoken],
        packages=origin([package]),
        left_out={path.as_posix(): "silence" for path in files if path not in spoken},
    )


def _unpack(package: Package, target: Path) -> None:
    with complete_folder(target) as folder:
        for path, content in package_files(package, _SOUNDS, ".wav"):
            _, *below_voice = Path(path).parts  # of which there is one
            if not below_voice or ".." in below_voice:
                raise DataError(f"{package.path} must hold plain paths, got {path}")
            file = folder.joinpath(*below_voice)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpeechSets:
    """The corpora of training, of dev, and of each test set; and why a test set is absent."""

    train: SpeechCorpus
    dev: SpeechCorpus
    test: dict[str, SpeechCorpus]
    absent: dict[str, str]


def make_speech_sets(data: DataConfig, task: TaskConfig, seed: int) -> SpeechSets:
    """The corpus of every set, no larger than the settings allow.

    Raises DataError or MachineError where a corpus cannot be had, ConfigError where a setting of a
    set is missing.
    """
    source = _Source(data, seed)
    sets = SpeechSets(source.train(), source.dev(), {}, {})
    for role, test_set in task.test_sets.items():
        made = _KINDS[test_set.kind](role, test_set, source)
        if isinstance(made, str):
            sets.absent[role] = made
            _log.warning("test set %s is absent: %s", role, made)
        else:
            sets.test[role] = _at_most(made, data.test_sentences, f"{seed}:{role}")
    return sets


class _Source:
    """Where speech comes from: the user's own corpora, or commands that espeak-ng reads."""

    def __init__(self, data: DataConfig, seed: int) -> None:
        self.data = data
        self.speech = data.speech
        self.seed = seed
        self.is_synthetic = not data.speech.train
        self._held_out = {"train"}
        self._held_out |= {"dev"} if not self.speech.dev else set()
        self._held_out |= {"test"} if self.speech.test is None else set()

    @cached_property
    def espeak(self) -> Espeak:
        return find_espeak(self.data)

    def train(self) -> SpeechCorpus:
        most = self.data.train_sentences
        if self.is_synthetic:
            n_command = min(self.speech.commands, most or self.speech.commands)
            return self._commands("train", n_command)
        own = self._own_part("train")
        return own if most is None else _at_most(own, most, f"{self.seed}:train")

    def dev(self) -> SpeechCorpus:
        most = self.data.dev_sentences
        if self.is_synthetic:
            return self._commands("dev", most)
        own = self.read(*self.speech.dev) if self.speech.dev else self._own_part("dev")
        return _at_most(own, most, f"{self.seed}:dev")

    def test(self) -> SpeechCorpus:
        if self.is_synthetic:
            return self._commands("test", self.data.test_sentences)
        return self.read(self.speech.test) if self.speech.test else self._own_part("test")

    def read(self, *paths: str) -> SpeechCorpus:
        return merged([read_speech(Path(path), self.speech.corpus) for path in paths])

    def _commands(self, part: str, n_utterance: int) -> SpeechCorpus:
        return command_corpus(self.data, part, n_utterance, self.seed, self.espeak)

    def _own_part(self, part: str) -> SpeechCorpus:
        """The utterances of the training corpora that belong to a part by the hash of their words.

        Parts that have a corpus of their own leave theirs to training.
        """
        corpus = self._whole
        kept = []
        for one in corpus.utterances:
            drawn = part_of(one.reference or one.source)
            if (drawn if drawn in self._held_out else "train") == part:
                kept.append(one)
        return replace(corpus, utterances=kept)

    @cached_property
    def _whole(self) -> SpeechCorpus:
        return self.read(*self.speech.train)


def _held_out(_: str, __: TestSetConfig, source: _Source) -> SpeechCorpus:
    return source.test()


def _harder(_: str, __: TestSetConfig, source: _Source) -> SpeechCorpus | str:
    data = source.data
    if source.is_synthetic:
        return harder_command_corpus(data, data.test_sentences, source.seed, source.espeak)
    if source.speech.test_other is None:
        return "data.speech.test_other names no corpus"
    return source.read(source.speech.test_other)


def _meetings(_: str, test_set: TestSetConfig, source: _Source) -> SpeechCorpus:
    data = source.data
    if source.speech.ami is not None:
        return read_speech(Path(source.speech.ami), test_set.corpus)
    name = test_set.corpus
    return dialogue_corpus(data, data.test_sentences, source.seed, name, source.espeak)


def _other_language(role: str, test_set: TestSetConfig, source: _Source) -> SpeechCorpus | str:
    if source.speech.common_voice is not None:
        return read_speech(Path(source.speech.common_voice), test_set.corpus)
    return _prompts(role, test_set, source)


def _prompts(role: str, test_set: TestSetConfig, source: _Source) -> SpeechCorpus | str:
    language = needed(role, "language", test_set.language)
    if language not in LANGUAGES:
        return f"there are telephone prompts in {' and '.join(LANGUAGES)} alone, not in {language}"
    try:
        return read_prompts(source.data, language, test_set.corpus)
    except MachineError as error:
        if source.is_synthetic:
            raise
        # The user's own corpora need no package, and a cluster may have neither apt nor network.
        _log.warning("%s: %s", role, error)
        return f"the package of telephone prompts in {language} cannot be had on this machine"


def _files(role: str, test_set: TestSetConfig, _: _Source) -> SpeechCorpus:
    return read_speech(Path(needed(role, "path", test_set.path)), test_set.corpus)


_KINDS: dict[str, Callable[[str, TestSetConfig, _Source], SpeechCorpus | str]] = {
    "held_out": _held_out,
    "harder": _harder,
    "meetings": _meetings,
    "other_language": _other_language,
    "telephone_prompts": _prompts,
    "files": _files,
}


def _at_most(corpus: SpeechCorpus, most: int, draw: str) -> SpeechCorpus:
    """At most so many utterances, in their order, drawn by a seed."""
    if len(corpus.utterances) <= most:
        return corpus
    places = sorted(Random(draw).sample(range(len(corpus.utterances)), most))
    return replace(corpus, utterances=[corpus.utterances[place] for place in places])

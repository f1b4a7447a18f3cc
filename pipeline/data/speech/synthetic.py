"""Synthetic corpora: commands and game dialogue that espeak-ng reads.

The group of a command is its text, which no other command of a dev or test set has. Test sets that
have the same text share its group. A voice is no group: the few voices are chosen, not drawn from
many, and each utterance has its own speed, pitch and noise. The group of a line of dialogue is its
level of the game, whose lines share rare words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

from pipeline.data.speech.corpus import SpeechCorpus, Utterance
from pipeline.data.speech.espeak import Espeak, Prompt, Voice, synthesise
from pipeline.data.text.debian_corpora import read_game_dialogue
from pipeline.errors import DataError
from pipeline.quality.transcripts import spoken_words
from pipeline.run.settings import DataConfig

_SWITCHES = ("on", "off")
_MOVES = ("open", "close")
_COLOURS = ("red", "green", "blue", "white")
_ROOMS = ("kitchen", "garden", "office", "bedroom")
_DEVICES = ("lamp", "heater", "radio", "fan")
_OPENINGS = ("door", "window", "gate")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TIMED_SHARE = 0.5
_PARTS = ("test", "dev", *["train"] * 8)
# Draws of a part, after which hardly any new sentence comes.
_MOST_DRAWS = 100_000


def commands(part: str, n_sentence: int, seed: int, purpose: str = "") -> list[str]:
    """Draw sentences of train, dev or test by a seed and a purpose.

    The hash of a sentence decides which part it belongs to, so that parts share no sentence. The
    sentences of dev and test are distinct. Those of train repeat, because a short command is one of
    few of its length and would be rare otherwise. Raises DataError if the grammar has too few
    distinct sentences; dev and test have more than 5,000 each.
    """
    generator = Random(f"{seed}:{part}:{purpose}")
    sentences = (text for text in _random_commands(generator) if part_of(text) == part)
    if part == "train":
        return list(islice(sentences, n_sentence))
    distinct: dict[str, None] = {}
    for sentence in islice(sentences, _MOST_DRAWS):
        distinct[sentence] = None
        if len(distinct) == n_sentence:
            return list(distinct)
    raise DataError(
        f"data.{part}_sentences: there are too few distinct commands (got {n_sentence}). "
        f"Set at most {len(distinct)}, or give your own speech in data.speech.train."
    )


def part_of(sentence: str) -> str:
    """Return train (for 8 of 10 sentences), dev or test, by a hash of the sentence."""
    code = int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:8])
    return _PARTS[code % len(_PARTS)]


def _random_commands(generator: Random) -> Iterator[str]:
    while True:
        shape = generator.randrange(4)
        names = _OPENINGS if shape == 2 else _DEVICES
        adjectives = [generator.choice(("", *_COLOURS)), generator.choice(("", *_ROOMS))]
        thing = ["the", *adjectives, generator.choice(names)]
        numbers = [generator.choice(_NUMBERS) for _ in range(generator.randint(1, 2))]
        time = ["at", *numbers] if generator.random() < _TIMED_SHARE else []
        if shape == 0:
            words = ["turn", generator.choice(_SWITCHES), *thing, *time]
        elif shape == 1:
            words = ["turn", *thing, generator.choice(_SWITCHES), *time]
        elif shape == 2:
            words = [generator.choice(_MOVES), *thing, *time]
        else:
            words = ["set", *thing, "to", *numbers]
        yield " ".join(word for word in words if word)


# Voices whose log-mel distance from en-us is at most 1.1, and at least 1.2.
_NEAR_VOICES = (
    *("en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-029"),
    *("en-us+croak", "en-us+m1", "en-us+m3", "en-us+m7", "en-us+Mario"),
    *("en-us+f1", "en-us+f2", "en-us+f3", "en-us+f5"),
)
_FAR_VOICES = ("en-us+Andy", "en-us+klatt", "en-us+belinda")
_DIALOGUE_VOICES = ("en-us+klatt4",)
_NEAR_SPEEDS, _FAR_SPEEDS = (155, 205), (140, 220)
_PITCHES = (35, 65)
_NOISE_RATIOS_DB = (15.0, 27.0)
# Longer lines of dialogue are unlike commands, and shorter lines are only exclamations.
_DIALOGUE_WORDS = range(3, 11)
_LICENCE = "GPL-3 (espeak-ng)"


def command_corpus(
    data: DataConfig, part: str, n_utterance: int, seed: int, espeak: Espeak
) -> SpeechCorpus:
    """Synthesise commands of train, dev or test in near voices."""
    sentences = commands(part, n_utterance, seed)
    generator = Random(f"{seed}:{part}:voices")
    prompts = [Prompt(text, _voice(generator, _NEAR_VOICES, _NEAR_SPEEDS)) for text in sentences]
    return _spoken(data, part, data.speech.corpus, "commands", prompts, sentences, espeak)


def harder_command_corpus(
    data: DataConfig, n_utterance: int, seed: int, espeak: Espeak
) -> SpeechCorpus:
    """Synthesise commands held out of training, in far voices, at other speeds, with noise."""
    sentences = commands("test", n_utterance, seed, "harder")
    generator = Random(f"{seed}:harder:voices")
    prompts = [
        Prompt(
            sentence,
            _voice(generator, _FAR_VOICES, _FAR_SPEEDS),
            round(generator.uniform(*_NOISE_RATIOS_DB), 1),
            generator.getrandbits(32),
        )
        for sentence in sentences
    ]
    name = f"{data.speech.corpus}, far voices and noise"
    spoken = _spoken(data, "harder", name, "commands", prompts, sentences, espeak)
    return replace(spoken, groups_of=data.speech.corpus)


def dialogue_corpus(
    data: DataConfig,
    n_utterance: int,
    seed: int,
    name: str,
    espeak: Espeak,
    trained: Container[str | None],
) -> SpeechCorpus:
    """Synthesise lines of game dialogue in a far voice, none twice.

    Lines in `trained`, the texts of the training set, are left out and recorded. Raises
    MachineError if the package of the dialogue is not available.
    """
    dialogue = read_game_dialogue(data, ["en"])
    levels: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for paragraph in dialogue.paragraphs():
        for sentence in paragraph.sentences["en"]:
            text = spoken_words(sentence)
            if len(text.split()) not in _DIALOGUE_WORDS:
                continue
            if text in trained:
                left_out[text] = "text of the training set"
            else:
                levels.setdefault(text, paragraph.page)
    generator = Random(f"{seed}:dialogue")
    drawn = generator.sample(list(levels), min(n_utterance, len(levels)))
    prompts = [Prompt(text, _voice(generator, _DIALOGUE_VOICES, _NEAR_SPEEDS)) for text in drawn]
    groups = [levels[text] for text in drawn]
    spoken = _spoken(data, "dialogue", name, "game dialogue", prompts, groups, espeak)
    packages = spoken.packages | dialogue.packages
    licence = f"{_LICENCE}, {dialogue.licence} (dialogue)"
    return replace(spoken, packages=packages, licence=licence, left_out=left_out)


def _voice(generator: Random, names: tuple[str, ...], speeds: tuple[int, int]) -> Voice:
    return Voice(generator.choice(names), generator.randint(*speeds), generator.randint(*_PITCHES))


def _spoken(
    data: DataConfig,
    part: str,
    name: str,
    domain: str,
    prompts: list[Prompt],
    groups: list[str],
    espeak: Espeak,
) -> SpeechCorpus:
    rate_hz = data.speech.sampling_rate_hz
    folder = synthesise(part, prompts, espeak, rate_hz, Path(data.downloads))
    return SpeechCorpus(
        name,
        _LICENCE,
        f"SYNTHETIC: {domain} read by espeak-ng",
        folder,
        [
            Utterance(f"{number:05d}.wav", prompt.text, group=group)
            for number, (prompt, group) in enumerate(zip(prompts, groups, strict=True))
        ],
        espeak.packages,
    )

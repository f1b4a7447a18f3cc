"""Spoken commands of a small vocabulary, and which of them are held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from random import Random

_SWITCHES = ("on", "off")
_COLOURS = ("red", "green", "blue")
_DEVICES = ("lamp", "heater")
_ROOMS = ("kitchen", "garden", "office")
_OPENINGS = ("door", "window")
_NUMBERS = ("one", "two", "three", "four", "five", "six")
_LONG_SHARE = 0.3
_MOST_WORDS = 10
_PARTS = ("test", "dev", *["train"] * 8)


def commands(part: str, n_sentence: int, seed: int, purpose: str = "") -> list[str]:
    """Sentences of train, dev or test, drawn by the seed and the purpose; the same may come again.

    A sentence belongs to one part, by its hash.
    """
    chance = Random(f"{seed}:{part}:{purpose}")
    return list(islice((one for one in _drawn(chance) if part_of(one) == part), n_sentence))


def part_of(sentence: str) -> str:
    """train (8 of 10 sentences), dev or test, by a hash of the sentence."""
    code = int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:8])
    return _PARTS[code % len(_PARTS)]


def _drawn(chance: Random) -> Iterator[str]:
    while True:
        n_command = 2 if chance.random() < _LONG_SHARE else 1
        sentence = " ".join(_command(chance) for _ in range(n_command))
        if len(sentence.split()) <= _MOST_WORDS:
            yield sentence


def _command(chance: Random) -> str:
    shape = chance.randrange(4)
    adjective = chance.choice(("", *_COLOURS, *_ROOMS))
    if shape == 0:
        words = ["turn", chance.choice(_SWITCHES), "the", adjective, chance.choice(_DEVICES)]
    elif shape == 1:
        words = ["turn", "the", adjective, chance.choice(_DEVICES), chance.choice(_SWITCHES)]
    elif shape == 2:
        words = [chance.choice(("open", "close")), "the", adjective, chance.choice(_OPENINGS)]
    else:
        numbers = [chance.choice(_NUMBERS) for _ in range(chance.randint(1, 2))]
        words = ["set", "the", adjective, chance.choice(_DEVICES), "at", *numbers]
    return " ".join(word for word in words if word)

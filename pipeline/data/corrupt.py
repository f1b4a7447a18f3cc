"""Out-of-domain inputs made from in-domain ones."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

_FINAL_PUNCTUATION = frozenset(".!?…:;。")
_TYPO_SHARE = 0.1
_LEAST_KEPT_SHARE, _MOST_KEPT_SHARE = 0.25, 0.75


def permute(pieces: Sequence[str], seed: int, sentence: int) -> list[str] | None:
    """[token]: the sub-word pieces of a sentence in another order; None where there is no other.

    The order depends on `seed`, the number of the sentence and its pieces, and always differs from
    the given one. Punctuation at the end stays where it is. (Paper, section 5: 'PRM'.)
    """
    end = _end_of_text(pieces)
    original, tail = list(pieces[:end]), list(pieces[end:])
    if len(set(original)) < 2:
        return None
    chance = _chance(seed, sentence, *pieces)
    permuted = list(original)
    while permuted == original:
        chance.shuffle(permuted)
    return permuted + tail


def misspell(text: str, seed: int, sentence: int) -> str | None:
    """The text with typing errors: about one letter in ten dropped, doubled or swapped.

    At least one letter of every text is changed; None where none can be. White space, digits and
    punctuation stay. Depends on `seed`, the number of the sentence and its text.
    """
    places = [place for place, character in enumerate(text) if character.isalpha()]
    if not places:
        return None
    chance = _chance(seed, sentence, text)
    n_typo = max(1, round(_TYPO_SHARE * len(places)))
    misspelt = text
    while misspelt == text or not misspelt.strip():
        misspelt = _with_typos(text, chance.sample(places, n_typo), chance)
    return misspelt


def cut_short(text: str, seed: int, sentence: int) -> str | None:
    """The first words of a text, between a quarter and three quarters; None where it has only one.

    How many depends on `seed`, the number of the sentence and its text.
    """
    words = text.split()
    if len(words) < 2:
        return None
    share = _chance(seed, sentence, text).uniform(_LEAST_KEPT_SHARE, _MOST_KEPT_SHARE)
    return " ".join(words[: max(1, min(len(words) - 1, round(share * len(words))))])


def _with_typos(text: str, places: Sequence[int], chance: random.Random) -> str:
    characters = list(text)
    # From the right, so that places further left stay where they are.
    for place in sorted(places, reverse=True):
        edit = chance.choice(("drop", "double", "swap"))
        following = characters[place + 1 : place + 2]
        if edit == "drop":
            del characters[place]
        elif edit == "swap" and following and following[0].isalpha():
            characters[place : place + 2] = [*following, characters[place]]
        else:
            characters.insert(place, characters[place])
    return "".join(characters)


def _chance(seed: int, sentence: int, *content: str) -> random.Random:
    # Hashed, since Python's own seeding of sequences is not promised to stay the same.
    key = hashlib.sha256("\n".join([str(seed), str(sentence), *content]).encode()).digest()
    return random.Random(int.from_bytes(key))


def _end_of_text(pieces: Sequence[str]) -> int:
    """Number of pieces before the punctuation that closes the sentence."""
    end = len(pieces)
    while end and pieces[end - 1].removeprefix("▁") in _FINAL_PUNCTUATION:
        end -= 1
    return end

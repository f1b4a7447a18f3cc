"""Out-of-domain inputs made from in-domain ones."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

_FINAL_PUNCTUATION = frozenset(".!?…:;。")


def permute(pieces: Sequence[str], seed: int, sentence: int) -> list[str] | None:
    """[token]: the sub-word pieces of a sentence in another order; None where there is no other.

    The order depends on `seed`, the number of the sentence and its pieces, and always differs from
    the given one. Punctuation at the end stays where it is. (Paper, section 5: 'PRM'.)
    """
    end = _end_of_text(pieces)
    original, tail = list(pieces[:end]), list(pieces[end:])
    if len(set(original)) < 2:
        return None
    # Hashed, since Python's own seeding of sequences is not promised to stay the same.
    key = hashlib.sha256("\n".join([str(seed), str(sentence), *pieces]).encode()).digest()
    chance = random.Random(int.from_bytes(key))
    permuted = list(original)
    while permuted == original:
        chance.shuffle(permuted)
    return permuted + tail


def _end_of_text(pieces: Sequence[str]) -> int:
    """Number of pieces before the punctuation that closes the sentence."""
    end = len(pieces)
    while end and pieces[end - 1].removeprefix("▁") in _FINAL_PUNCTUATION:
        end -= 1
    return end

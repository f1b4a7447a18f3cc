"""One Unicode form for the texts that are compared: NFC."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

FORM: Final = "NFC"


def normalised(texts: Sequence[str]) -> list[str]:
    """The texts in Unicode form NFC, in which equal characters have equal code points."""
    return [unicodedata.normalize(FORM, text) for text in texts]


def count_changed(texts: Iterable[str]) -> int:
    """How many of the texts `normalised` changes."""
    return sum(not unicodedata.is_normalized(FORM, text) for text in texts)

"""The words of transcripts: stage prepare writes references in them, and WER may compare them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

# Choices of metrics.transcripts.
AS_DECODED: Final = "as_decoded"
WORDS: Final = "words"
_SIGNATURES = {AS_DECODED: "case:mixed", WORDS: "case:lc|transcripts:words"}
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "`": "'"})


def spoken_words(text: str) -> str:
    """Normalise a transcript to lower-case words of letters, digits and apostrophes.

    Apostrophes are kept inside and at the end of words. All other characters separate words. The
    result is its own normal form.
    """
    plain = unicodedata.normalize("NFC", text).casefold().translate(_APOSTROPHES)
    kept = "".join(
        character if character == "'" or _is_part_of_word(character) else " " for character in plain
    )
    return " ".join(stripped for word in kept.split() if (stripped := word.lstrip("'")))


def compared(texts: Sequence[str], transcripts: str) -> list[str]:
    """The texts in which errors are counted: as they are, or their words by `spoken_words`."""
    return [spoken_words(text) for text in texts] if transcripts == WORDS else list(texts)


def transcripts_signature(transcripts: str) -> str:
    """The parts of a signature that tell what of the texts is compared."""
    return _SIGNATURES[transcripts]


def compares_words(signature: str) -> bool:
    """Whether a signature says that texts are compared by their words."""
    return f"transcripts:{WORDS}" in signature


def _is_part_of_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"

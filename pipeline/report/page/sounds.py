"""The sounds that the page embeds: those of the sentences that it lists first."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from pipeline.data.speech.sounds import SoundFile
from pipeline.errors import DataError

# Per test set, so that the size of the page is bounded.
_MOST_SOUNDS = 20
_MOST_BYTES = 120_000


def embedded_sounds(path: Path, ranking: Sequence[int], n_sentence: int) -> dict[int, str]:
    """Position of a sentence -> its sound, an MP3 file in base64.

    `ranking` lists positions. The first of them that have a sound are embedded, as long as all fit
    into the size. Raises DataError if the file holds the sounds of another test set.
    """
    file = SoundFile(path)
    if len(file.n_byte) != n_sentence:
        raise DataError(
            f"{path}: must hold the sounds of the {n_sentence} sentences of the decode store "
            f"(got {len(file.n_byte)}). Run python -m stages.decode again."
        )
    sounds: dict[int, str] = {}
    n_left = _MOST_BYTES
    for position in ranking:
        n_byte = int(file.n_byte[position])
        if len(sounds) < _MOST_SOUNDS and 0 < n_byte <= n_left:
            n_left -= n_byte
            sounds[position] = b64encode(file.mp3(position)).decode("ascii")
    return sounds

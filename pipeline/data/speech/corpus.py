"""What every speech corpus gives: stretches of audio, and what is said in them."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pipeline.data.lines import iterate_lines

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "`": "'"})


class Utterance(NamedTuple):
    """A stretch of an audio file, named relative to the corpus' folder, and what is said in it.

    `reference` is None where there is no transcript; `end_seconds` is None at the end of the file.
    """

    file: str
    reference: str | None
    start_seconds: float = 0.0
    end_seconds: float | None = None

    @property
    def source(self) -> str:
        """The file, with the stretch as a media fragment where it is not the whole file."""
        if self.end_seconds is None:
            return self.file
        return f"{self.file}#t={self.start_seconds:.2f},{self.end_seconds:.2f}"


@dataclass(frozen=True)
class SpeechCorpus:
    """A corpus of audio below one folder.

    `left_out`: a file or transcript that is no utterance -> why.
    """

    name: str
    licence: str
    domain: str
    folder: Path
    utterances: list[Utterance]
    packages: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def merged(corpora: list[SpeechCorpus]) -> SpeechCorpus:
    """Corpora of one kind as one, below the folder that they share."""
    if len(corpora) == 1:
        return corpora[0]
    folder = Path(os.path.commonpath([one.folder.resolve() for one in corpora]))
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for one in corpora:
        below = one.folder.resolve().relative_to(folder)
        utterances += [
            utterance._replace(file=(below / utterance.file).as_posix())
            for utterance in one.utterances
        ]
        left_out |= {(below / name).as_posix(): why for name, why in one.left_out.items()}
    return replace(corpora[0], folder=folder, utterances=utterances, left_out=left_out)


def spoken_words(text: str) -> str:
    """A transcript as it is learnt and scored: lower case, words of letters, digits, apostrophes.

    An apostrophe stands only inside or at the end of a word; all other characters part words.
    """
    plain = unicodedata.normalize("NFC", text).casefold().translate(_APOSTROPHES)
    kept = "".join(one if one == "'" or _is_part_of_word(one) else " " for one in plain)
    return " ".join(word for word in (one.lstrip("'") for one in kept.split()) if word)


def _is_part_of_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


AUDIO_SUFFIXES = (".wav", ".flac", ".mp3")


def read_audio_folder(folder: Path, name: str) -> SpeechCorpus:
    """The audio files below a folder in the order of their names; without a .txt, no reference.

    A .txt without audio is left out and named.
    """
    files = audio_files(folder)
    beside = {path.with_suffix(".txt") for path in files}
    left_out = {
        path.relative_to(folder).as_posix(): "transcript without audio"
        for path in sorted(folder.rglob("*.txt"))
        if path not in beside
    }
    return SpeechCorpus(
        name,
        licence="the user's own speech: see its source",
        domain="not stated",
        folder=folder,
        utterances=[
            Utterance(path.relative_to(folder).as_posix(), _transcript(path)) for path in files
        ],
        left_out=left_out,
    )


def audio_files(folder: Path) -> list[Path]:
    """The audio files below a folder, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in AUDIO_SUFFIXES)


def _transcript(audio: Path) -> str | None:
    path = audio.with_suffix(".txt")
    return spoken_words(" ".join(iterate_lines(path))) if path.is_file() else None

"""A plain folder of audio files, each with its transcript in a .txt of the same name."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.speech.corpus import SpeechCorpus, Utterance, spoken_words
from pipeline.data.text import iterate_lines

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

"""LibriSpeech as it is published: {speaker}/{chapter}/*.flac and one .trans.txt a chapter."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.speech.corpus import SpeechCorpus, Utterance, spoken_words
from pipeline.data.transcripts import chapter_transcripts

_TRANSCRIPTS = "*/*/*.trans.txt"


def is_librispeech(folder: Path) -> bool:
    """Does a folder hold chapters of LibriSpeech?"""
    return any(folder.glob(_TRANSCRIPTS))


def read_librispeech(folder: Path, name: str) -> SpeechCorpus:
    """The utterances of a part such as test-clean, by speaker, chapter and number.

    Audio without a transcript has no reference; a transcript without audio is left out and named.
    Raises DataError where a line is not an utterance id of its chapter and words.
    """
    words = {
        path.with_name(f"{utterance}.flac"): spoken_words(text)
        for path in sorted(folder.glob(_TRANSCRIPTS))
        for utterance, text in chapter_transcripts(path)
    }
    files = sorted(folder.glob("*/*/*.flac"))
    absent = sorted(words.keys() - set(files))
    return SpeechCorpus(
        name,
        licence="CC-BY-4.0",
        domain="story books",
        folder=folder,
        utterances=[
            Utterance(path.relative_to(folder).as_posix(), words.get(path)) for path in files
        ],
        left_out={
            path.relative_to(folder).as_posix(): "transcript without audio" for path in absent
        },
    )

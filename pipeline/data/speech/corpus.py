"""Speech corpora: segments of audio files, and their transcripts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pipeline.data.folders import matching
from pipeline.data.lines import iterate_lines
from pipeline.quality.transcripts import spoken_words


class Utterance(NamedTuple):
    """A segment of an audio file, which is named relative to the corpus' folder.

    `reference` is the transcript, if any. `end_seconds` is None for the end of the file. `group`
    names what it has in common with other utterances of the corpus, such as the speaker; None if
    that is not known. docs/your_own_speech.md says which group each layout has, and why.
    """

    file: str
    reference: str | None
    start_seconds: float = 0.0
    end_seconds: float | None = None
    group: str | None = None
    channel: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The file, with the segment as a media fragment unless it is the whole file."""
        if self.end_seconds is None:
            return self.file
        track = "" if self.channel is None else f"&track={self.channel}"
        return f"{self.file}#t={self.start_seconds:.2f},{self.end_seconds:.2f}{track}"


@dataclass(frozen=True)
class SpeechCorpus:
    """A corpus of audio files below one folder.

    `left_out`: file or transcript that is not an utterance -> reason. `groups_of`: the corpus whose
    groups these are, if it is another one.
    """

    name: str
    licence: str
    domain: str
    folder: Path
    utterances: list[Utterance]
    packages: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    groups_of: str | None = None


def merged(corpora: list[SpeechCorpus]) -> SpeechCorpus:
    """Merge corpora of one kind, relative to the folder that they share."""
    if len(corpora) == 1:
        return corpora[0]
    folder = Path(os.path.commonpath([corpus.folder.resolve() for corpus in corpora]))
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for corpus in corpora:
        below = corpus.folder.resolve().relative_to(folder)
        utterances += [
            utterance._replace(file=(below / utterance.file).as_posix())
            for utterance in corpus.utterances
        ]
        left_out |= {(below / name).as_posix(): reason for name, reason in corpus.left_out.items()}
    return replace(corpora[0], folder=folder, utterances=utterances, left_out=left_out)


AUDIO_SUFFIXES = (".wav", ".flac", ".mp3", ".sph")
# Audio that users have, and that is left out with a reason.
_OTHER_AUDIO_SUFFIXES = (
    *(".aac", ".aif", ".aiff", ".amr", ".au", ".caf", ".m4a", ".mp4", ".oga", ".ogg", ".opus"),
    *(".shn", ".webm", ".wma", ".wv"),
)
NO_AUDIO = "transcript without audio"
NOT_SCORED = "not scored"


def read_audio_folder(folder: Path, name: str) -> SpeechCorpus:
    """Read the audio files below a folder, in the order of their names.

    A .txt file beside an audio file is its reference. Other .txt files, and audio in other formats,
    are left out and recorded.
    If files are in several folders, those of a subfolder are a group. Any other file is a group of
    its own.
    """
    files = audio_files(folder)
    several = len({path.parent for path in files}) > 1
    beside = {path.with_suffix(".txt") for path in files}
    left_out = other_audio(folder)
    left_out |= {
        path.relative_to(folder).as_posix(): NO_AUDIO
        for path in matching(folder, "**/*.txt")
        if path not in beside
    }
    return SpeechCorpus(
        name,
        licence="the user's own speech: see its source",
        domain="not stated",
        folder=folder,
        utterances=[_utterance(path.relative_to(folder), folder, several) for path in files],
        left_out=left_out,
    )


def audio_files(folder: Path) -> list[Path]:
    """List the audio files below a folder, in the order of their names."""
    return [path for path in matching(folder, "**/*") if path.suffix.lower() in AUDIO_SUFFIXES]


def other_audio(folder: Path) -> dict[str, str]:
    """Map the audio files below a folder that are not read to the reason."""
    return {
        path.relative_to(folder).as_posix(): f"{path.suffix} is not read: convert it to .flac"
        for path in matching(folder, "**/*")
        if path.suffix.lower() in _OTHER_AUDIO_SUFFIXES
    }


def _utterance(file: Path, folder: Path, several: bool) -> Utterance:
    group = file.parent if several and file.parent != Path() else file
    return Utterance(file.as_posix(), _transcript(folder / file), group=group.as_posix())


def _transcript(audio: Path) -> str | None:
    path = audio.with_suffix(".txt")
    return spoken_words(" ".join(iterate_lines(path))) if path.is_file() else None

"""The user's own speech, in whichever published layout it lies."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

from pipeline.data.lines import iterate_lines
from pipeline.data.speech.ami import is_ami, read_ami
from pipeline.data.speech.corpus import (
    SpeechCorpus,
    Utterance,
    audio_files,
    read_audio_folder,
    spoken_words,
)
from pipeline.data.text.published_corpora import iterate_transcripts
from pipeline.errors import DataError

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
        for utterance, text in iterate_transcripts(path)
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


_CLIPS = "clips"
_COLUMNS = ("path", "sentence")


def read_common_voice(tsv: Path, name: str) -> SpeechCorpus:
    """The clips of a .tsv in its order; those without audio are left out and named.

    Raises DataError where a column is missing, a line has other columns than the first, or a clip
    is named by more than the name of a file in clips.
    """
    lines = iterate_lines(tsv)
    header = next(lines, "").split("\t")
    for column in _COLUMNS:
        if column not in header:
            raise DataError(f"{tsv} must have the column {column}, got {', '.join(header)}")
    path_column, sentence_column = map(header.index, _COLUMNS)
    present = {path.name for path in (tsv.parent / _CLIPS).glob("*")}
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise DataError(
                f"{tsv}, line {number} must have {len(header)} columns, got {len(fields)}"
            )
        file_name = fields[path_column]
        if file_name in ("", "..") or Path(file_name).name != file_name:
            raise DataError(
                f"{tsv}, line {number} must name a file in clips, got {file_name[:60]!r}"
            )
        clip = Path(_CLIPS, file_name)
        clip = clip if clip.suffix else clip.with_suffix(".mp3")
        file = clip.as_posix()
        if clip.name in present:
            words = spoken_words(fields[sentence_column])
            utterances.append(Utterance(file, words or None))
        else:
            left_out[file] = "transcript without audio"
    return SpeechCorpus(
        name,
        licence="CC0-1.0",
        domain="general",
        folder=tsv.parent,
        utterances=utterances,
        left_out=left_out,
    )


# File, channel, speaker, begin, end, perhaps a label in angle brackets, words.
_SECONDS = r"(\d+\.?\d*|\.\d+)"
_SEGMENT = re.compile(rf"(\S+)\s+\S+\s+\S+\s+{_SECONDS}\s+{_SECONDS}(?:\s+<[^>]*>)?(?:\s+(.*))?")
_COMMENT = ";;"
_NOT_SCORED = "ignore_time_segment_in_scoring"


def read_stm(folder: Path, name: str) -> SpeechCorpus:
    """The segments of the .stm files below a folder, whose recordings lie anywhere below it.

    Segments without a recording, and those that are not scored, are left out and named. Raises
    DataError where a line is no segment or ends before it begins.
    """
    recordings = {path.stem: path.relative_to(folder).as_posix() for path in audio_files(folder)}
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for stm in sorted(folder.rglob("*.stm")):
        for number, line in enumerate(iterate_lines(stm), 1):
            if line.startswith(_COMMENT) or not line.strip():
                continue
            segment = _SEGMENT.fullmatch(line.strip())
            if segment is None or not float(segment[2]) < float(segment[3]) < inf:
                raise DataError(
                    f"{stm}, line {number} must be recording, channel, speaker, begin, end and "
                    f"words, got {line[:60]!r}"
                )
            recording, start, end, words = segment.groups()
            place = f"{stm.relative_to(folder).as_posix()}, line {number}"
            if (words or "").strip().lower() == _NOT_SCORED:
                left_out[place] = "not scored"
            elif recording not in recordings:
                left_out[place] = "transcript without audio"
            else:
                said = spoken_words(words or "")
                file = recordings[recording]
                utterances.append(Utterance(file, said, float(start), float(end)))
    return SpeechCorpus(
        name,
        licence="see its source",
        domain="not stated",
        folder=folder,
        utterances=utterances,
        left_out=left_out,
    )


def read_speech(path: Path, name: str) -> SpeechCorpus:
    """The utterances at a path: a Common Voice .tsv, or a folder.

    A folder is read as LibriSpeech's (speaker/chapter/*.trans.txt), as AMI's (words/ and
    segments/), by its .stm files, else as audio with a .txt beside each. `name` is what the corpus
    is called. Raises DataError where there is no utterance, or a file breaks its layout's rules.
    """
    if not path.exists():
        raise DataError(f"{path} must be a folder of speech or a .tsv of Common Voice, got nothing")
    if path.is_file():
        corpus = read_common_voice(path, name)
    elif is_librispeech(path):
        corpus = read_librispeech(path, name)
    elif is_ami(path):
        corpus = read_ami(path, name)
    elif any(path.rglob("*.stm")):
        corpus = read_stm(path, name)
    else:
        corpus = read_audio_folder(path, name)
    if not corpus.utterances:
        raise DataError(f"{path} must hold an utterance, got {len(corpus.left_out)} left out")
    return corpus

"""Recordings with the transcripts of their segments in NIST's .stm files."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

from pipeline.data.speech.audio_folder import audio_files
from pipeline.data.speech.corpus import SpeechCorpus, Utterance, spoken_words
from pipeline.data.text import iterate_lines
from pipeline.errors import DataError

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

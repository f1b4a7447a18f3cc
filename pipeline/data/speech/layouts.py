"""The user's own speech in published layouts: LibriSpeech, Common Voice, STM files and AMI."""

from __future__ import annotations

import re
from collections import Counter
from math import inf, isfinite, nan
from pathlib import Path
from xml.etree import ElementTree

from pipeline.data.folders import matching
from pipeline.data.lines import iterate_lines
from pipeline.data.speech.corpus import (
    NO_AUDIO,
    NOT_SCORED,
    SpeechCorpus,
    Utterance,
    audio_files,
    other_audio,
    read_audio_folder,
)
from pipeline.data.speech.nist import plain_transcript
from pipeline.data.text.published_corpora import iterate_transcripts
from pipeline.errors import DataError
from pipeline.quality.transcripts import spoken_words

_TRANSCRIPTS = "*/*/*.trans.txt"


def read_speech(path: Path, name: str, language: str | None = None) -> SpeechCorpus:
    """Read the utterances at a path in a language: the .tsv of Common Voice, or a folder.

    A folder is read as LibriSpeech (speaker/chapter/*.trans.txt), as AMI (words/ and segments/),
    by its .stm files, or as audio files with a .txt beside each. Raises DataError if there is no
    utterance, if a file is malformed, or if the folder holds several parts of LibriSpeech.
    """
    if not path.exists():
        raise DataError(
            f"{path}: no such file or folder. Give a folder of speech, or a .tsv of Common Voice."
        )
    if path.is_file():
        corpus = read_common_voice(path, name)
    elif matching(path, _TRANSCRIPTS):
        corpus = read_librispeech(path, name)
    elif parts := _librispeech_parts(path):
        names = ", ".join(part.relative_to(path).as_posix() for part in parts)
        raise DataError(
            f"{path}: is a folder of parts of LibriSpeech ({names}). Give one part, such as "
            f"{parts[0]}, or a list of parts."
        )
    elif matching(path, f"**/{_SEGMENTS}"):
        corpus = read_ami(path, name)
    elif matching(path, "**/*.stm"):
        corpus = read_stm(path, name, language)
    else:
        corpus = read_audio_folder(path, name)
    if not corpus.utterances:
        reasons = Counter(corpus.left_out.values()).most_common()
        listed = ", ".join(f"{count} x {reason}" for reason, count in reasons) or "none"
        raise DataError(
            f"{path}: no utterance (left out: {listed}). Check the layout of the corpus."
        )
    return corpus


def _librispeech_parts(path: Path) -> list[Path]:
    """List folders such as dev-clean in the folder, or in a folder LibriSpeech below it."""
    transcripts = matching(path, f"*/{_TRANSCRIPTS}") + matching(path, f"*/*/{_TRANSCRIPTS}")
    return sorted({transcript.parents[2] for transcript in transcripts})


def read_librispeech(folder: Path, name: str) -> SpeechCorpus:
    """Read the utterances of a part such as test-clean, by speaker, chapter and number.

    Audio without a transcript has no reference; transcripts without audio are left out and
    recorded. A group is a speaker. Raises DataError if a transcript is malformed.
    """
    words = {
        path.with_name(f"{utterance}.flac"): spoken_words(text)
        for path in matching(folder, _TRANSCRIPTS)
        for utterance, text in iterate_transcripts(path)
    }
    files = matching(folder, "*/*/*.flac")
    absent = sorted(words.keys() - set(files))
    return SpeechCorpus(
        name,
        licence="CC-BY-4.0",
        domain="story books",
        folder=folder,
        utterances=[
            Utterance(file.as_posix(), words.get(folder / file), group=file.parts[0])
            for file in (path.relative_to(folder) for path in files)
        ],
        left_out={path.relative_to(folder).as_posix(): NO_AUDIO for path in absent},
    )


# Common Voice

_CLIPS = "clips"
_COLUMNS = ("path", "sentence")
_SPEAKER = "client_id"


def read_common_voice(tsv: Path, name: str) -> SpeechCorpus:
    """Read the clips of a .tsv in order; those without audio are left out and recorded.

    A group is a speaker; without the column client_id, or an entry in it, none is known. Raises
    DataError if another column is missing, if a line has another number of columns than the first,
    or if a path is not the plain name of a file in clips/.
    """
    lines = iterate_lines(tsv)
    header = next(lines, "").split("\t")
    for column in _COLUMNS:
        if column not in header:
            raise DataError(
                f"{tsv}: no column {column} (got {', '.join(header)}). Give a .tsv of Common Voice."
            )
    path_column, sentence_column = map(header.index, _COLUMNS)
    speaker_column = header.index(_SPEAKER) if _SPEAKER in header else None
    present = {path.name for path in (tsv.parent / _CLIPS).glob("*")}
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise DataError(
                f"{tsv}, line {number}: must have {len(header)} columns (got {len(fields)}). "
                f"Unpack the corpus again."
            )
        file_name = fields[path_column]
        if file_name in ("", "..") or Path(file_name).name != file_name:
            raise DataError(
                f"{tsv}, line {number}: not the name of a file in clips ({file_name[:60]!r}). "
                f"Unpack the corpus again."
            )
        clip = Path(_CLIPS, file_name)
        clip = clip if clip.suffix else clip.with_suffix(".mp3")
        file = clip.as_posix()
        if clip.name in present:
            words = spoken_words(fields[sentence_column])
            speaker = None if speaker_column is None else fields[speaker_column] or None
            utterances.append(Utterance(file, words or None, group=speaker))
        else:
            left_out[file] = NO_AUDIO
    return SpeechCorpus(
        name,
        licence="CC0-1.0",
        domain="general",
        folder=tsv.parent,
        utterances=utterances,
        left_out=left_out,
    )


# NIST's segment time marks

# Recording, channel, speaker, start, end, an optional label in angle brackets, words.
_SECONDS = r"(\d+\.?\d*|\.\d+)"
_SEGMENT = re.compile(rf"(\S+)\s+(\S+)\s+\S+\s+{_SECONDS}\s+{_SECONDS}(?:\s+<[^>]*>)?(?:\s+(.*))?")
_COMMENT = ";;"
_IGNORED = "ignore_time_segment_in_scoring"


def read_stm(folder: Path, name: str, language: str | None = None) -> SpeechCorpus:
    """Read the segments of all .stm files below a folder; recordings may be anywhere below it.

    Of a recording with several channels, the one that the line names is used. Marks of NIST become
    words, or are removed, and are counted. Segments without a recording, or excluded from scoring,
    are left out and recorded. A group is a recording. Raises DataError if a line is malformed, or
    if a segment does not end after it starts.
    """
    recordings = _recordings(folder)
    unread = {Path(file).stem: reason for file, reason in other_audio(folder).items()}
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for stm in matching(folder, "**/*.stm"):
        for number, line in enumerate(iterate_lines(stm), 1):
            if line.startswith(_COMMENT) or not line.strip():
                continue
            segment = _SEGMENT.fullmatch(line.strip())
            if segment is None or float(segment[4]) == inf:
                raise DataError(
                    f"{stm}, line {number}: must be recording, channel, speaker, start, end and "
                    f"words (got {line[:60]!r}). Correct the line."
                )
            recording, channel, start, end, words = segment.groups()
            if float(start) >= float(end):
                raise DataError(
                    f"{stm}, line {number}: the segment must end after it starts (got start "
                    f"{start} and end {end}). Correct the times."
                )
            where = f"{stm.relative_to(folder).as_posix()}, line {number}"
            if (words or "").strip().lower() == _IGNORED:
                left_out[where] = NOT_SCORED
            elif recording not in recordings:
                left_out[where] = unread.get(recording, NO_AUDIO)
            else:
                try:
                    text, notes = plain_transcript(words or "", recording, language)
                except ValueError as error:
                    raise DataError(f"{stm}, line {number}: {error}. Correct the line.") from None
                utterances.append(
                    Utterance(
                        recordings[recording],
                        spoken_words(text),
                        float(start),
                        float(end),
                        recording,
                        channel,
                        notes,
                    )
                )
    return SpeechCorpus(
        name,
        licence="see its source",
        domain="not stated",
        folder=folder,
        utterances=utterances,
        left_out=left_out,
    )


def _recordings(folder: Path) -> dict[str, str]:
    """Map the stem of each audio file below a folder to its relative path."""
    return {path.stem: path.relative_to(folder).as_posix() for path in audio_files(folder)}


# AMI: words/ and segments/ in NITE XML, and the recordings of the meetings

_NITE = "{http://nite.sourceforge.net/}"
_SEGMENTS = "segments/*.segments.xml"
_IDS = re.compile(r"#id\(([^)]+)\)(?:\.\.id\(([^)]+)\))?")


def read_ami(folder: Path, name: str) -> SpeechCorpus:
    """Read the segments of all speakers in meetings whose recordings are anywhere below a folder.

    Each speaker's own headset is used, as corpusResources/meetings.xml assigns it, or else the mix
    of all headsets. Files of segments without a recording, and segments without a word, are left
    out and recorded. A group is a meeting. Raises DataError if an XML file is damaged, lacks an
    attribute or has one that is not a number, or if a segment refers to an unknown word.
    """
    recordings = _recordings(folder)
    channels = _headset_channels(folder)
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for path in matching(folder, f"**/{_SEGMENTS}"):
        meeting, speaker = path.name.split(".")[:2]
        headset = f"{meeting}.Headset-{channels.get((meeting, speaker), 'none')}"
        file = recordings.get(headset, recordings.get(f"{meeting}.Mix-Headset"))
        if file is None:
            left_out[path.relative_to(folder).as_posix()] = NO_AUDIO
            continue
        words = _WordFile(path.parent.parent / "words" / f"{meeting}.{speaker}.words.xml")
        for segment in _parsed(path).iter("segment"):
            transcript = spoken_words(" ".join(_segment_words(segment, words, path)))
            start = _seconds(segment, "transcriber_start", path)
            end = _seconds(segment, "transcriber_end", path)
            if transcript and start < end:
                utterances.append(Utterance(file, transcript, start, end, meeting))
            else:
                left_out[f"{path.name}, {_attribute(segment, f'{_NITE}id', path)}"] = "no word"
    return SpeechCorpus(
        name,
        licence="CC-BY-4.0",
        domain="meetings",
        folder=folder,
        utterances=utterances,
        left_out=left_out,
    )


def _headset_channels(folder: Path) -> dict[tuple[str, str], str]:
    """Map (meeting, speaker) to the number of the speaker's headset."""
    return {
        (_attribute(meeting, "observation", path), speaker.attrib["nxt_agent"]): speaker.attrib[
            "channel"
        ]
        for path in matching(folder, "**/corpusResources/meetings.xml")
        for meeting in _parsed(path).iter("meeting")
        for speaker in meeting.iter("speaker")
        if "nxt_agent" in speaker.attrib and "channel" in speaker.attrib
    }


class _WordFile:
    """The elements of a file of words, in order. Elements that are not words have empty texts."""

    def __init__(self, path: Path) -> None:
        elements = list(_parsed(path))
        self._texts = [(word.text or "") if word.tag == "w" else "" for word in elements]
        ids = [_attribute(word, f"{_NITE}id", path) for word in elements]
        self._position = {word_id: position for position, word_id in enumerate(ids)}

    def between(self, first: str, last: str) -> list[str] | None:
        """Return the texts from one id to another, inclusive; None if an id is unknown."""
        if first not in self._position or last not in self._position:
            return None
        return self._texts[self._position[first] : self._position[last] + 1]


def _segment_words(segment: ElementTree.Element, words: _WordFile, path: Path) -> list[str]:
    segment_texts: list[str] = []
    for child in segment.iter(f"{_NITE}child"):
        reference = child.attrib.get("href", "")
        match = _IDS.search(reference)
        texts = words.between(match[1], match[2] or match[1]) if match else None
        if texts is None:
            raise DataError(
                f"{path}: refers to unknown words ({reference!r}). Unpack the annotations again."
            )
        segment_texts += texts
    return segment_texts


def _attribute(element: ElementTree.Element, name: str, path: Path) -> str:
    if name not in element.attrib:
        plain = name.removeprefix(_NITE)
        raise DataError(
            f"{path}: an element {element.tag} has no attribute {plain}. Unpack the annotations "
            f"again."
        )
    return element.attrib[name]


def _seconds(element: ElementTree.Element, name: str, path: Path) -> float:
    text = _attribute(element, name, path)
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not isfinite(seconds):
        raise DataError(
            f"{path}: {name} must be a number of seconds (got {text[:40]!r}). "
            f"Unpack the annotations again."
        )
    return seconds


def _parsed(path: Path) -> ElementTree.Element:
    try:
        return ElementTree.parse(path).getroot()
    except OSError:
        raise DataError(f"{path}: no such file. Unpack the annotations again.") from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        # ElementTree raises the last two for unknown and for multi-byte encodings.
        raise DataError(f"{path}: damaged XML ({error}). Unpack the annotations again.") from None

"""AMI as it is published: words/ and segments/ in NITE XML, and the meetings' recordings."""

from __future__ import annotations

import re
from math import isfinite, nan
from pathlib import Path
from xml.etree import ElementTree

from pipeline.data.speech.corpus import SpeechCorpus, Utterance, audio_files, spoken_words
from pipeline.errors import DataError

_NITE = "{http://nite.sourceforge.net/}"
_SEGMENTS = "segments/*.segments.xml"
_IDS = re.compile(r"#id\(([^)]+)\)(?:\.\.id\(([^)]+)\))?")


def is_ami(folder: Path) -> bool:
    """Does a folder hold AMI's transcripts?"""
    return any(folder.rglob(_SEGMENTS))


def read_ami(folder: Path, name: str) -> SpeechCorpus:
    """The segments of every speaker of the meetings whose recordings lie anywhere below a folder.

    A speaker's own headset is used, as corpusResources/meetings.xml assigns it, else the mix of all
    headsets. Files of segments without a recording, and segments without a word, are left out and
    named. Raises DataError where an XML file is damaged, lacks an attribute or has one that is no
    number, and where a segment names an unknown word.
    """
    recordings = {path.stem: path.relative_to(folder).as_posix() for path in audio_files(folder)}
    channels = _channels(folder)
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for path in sorted(folder.rglob(_SEGMENTS)):
        meeting, speaker = path.name.split(".")[:2]
        headset = f"{meeting}.Headset-{channels.get((meeting, speaker), 'none')}"
        file = recordings.get(headset, recordings.get(f"{meeting}.Mix-Headset"))
        if file is None:
            left_out[path.relative_to(folder).as_posix()] = "transcript without audio"
            continue
        words = _Words(path.parent.parent / "words" / f"{meeting}.{speaker}.words.xml")
        for segment in _parsed(path).iter("segment"):
            said = spoken_words(" ".join(_said(segment, words, path)))
            start, end = (_seconds(segment, f"transcriber_{one}", path) for one in ("start", "end"))
            if said and start < end:
                utterances.append(Utterance(file, said, start, end))
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


def _channels(folder: Path) -> dict[tuple[str, str], str]:
    """(meeting, speaker) -> number of the headset."""
    return {
        (_attribute(meeting, "observation", path), one.attrib["nxt_agent"]): one.attrib["channel"]
        for path in sorted(folder.rglob("corpusResources/meetings.xml"))
        for meeting in _parsed(path).iter("meeting")
        for one in meeting.iter("speaker")
        if "nxt_agent" in one.attrib and "channel" in one.attrib
    }


class _Words:
    """The elements of a file of words in its order; what is no word has an empty text."""

    def __init__(self, path: Path) -> None:
        elements = list(_parsed(path))
        self._texts = [(one.text or "") if one.tag == "w" else "" for one in elements]
        ids = [_attribute(one, f"{_NITE}id", path) for one in elements]
        self._places = {one: place for place, one in enumerate(ids)}

    def between(self, first: str, last: str) -> list[str] | None:
        """Texts from one id to another, both included; None where there is no such id."""
        if first not in self._places or last not in self._places:
            return None
        return self._texts[self._places[first] : self._places[last] + 1]


def _said(segment: ElementTree.Element, words: _Words, path: Path) -> list[str]:
    said: list[str] = []
    for child in segment.iter(f"{_NITE}child"):
        reference = child.attrib.get("href", "")
        match = _IDS.search(reference)
        texts = words.between(match[1], match[2] or match[1]) if match else None
        if texts is None:
            raise DataError(f"{path} must name words of its speaker, got {reference!r}")
        said += texts
    return said


def _attribute(element: ElementTree.Element, name: str, path: Path) -> str:
    if name not in element.attrib:
        plain = name.removeprefix(_NITE)
        raise DataError(f"{path}: every {element.tag} must have the attribute {plain}, got none")
    return element.attrib[name]


def _seconds(element: ElementTree.Element, name: str, path: Path) -> float:
    text = _attribute(element, name, path)
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not isfinite(seconds):
        raise DataError(f"{path}: {name} must be a number of seconds, got {text[:40]!r}")
    return seconds


def _parsed(path: Path) -> ElementTree.Element:
    try:
        return ElementTree.parse(path).getroot()
    except OSError:
        raise DataError(f"{path} must exist, got no such file") from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        # The last two: an encoding that Python does not know, or that is not of single bytes.
        raise DataError(f"{path} must be XML, got a damaged file ({error})") from None

"""A prepared test set, read and turned into token ids and frames."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, overload

from pipeline.decoding.sentence import Sentence
from pipeline.errors import DataError
from pipeline.fairseq_bridge.utterances import UtteranceFile

# Frames of 10 ms that a unit of speech takes, about.
_FRAMES_A_TOKEN = 20


class Dictionary(Protocol):
    """What is needed of a vocabulary; an unknown unit has the index of `<unk>`."""

    symbols: list[str]

    def __len__(self) -> int:
        """Number of units."""

    def index(self, sym: str) -> int:
        """Token id of a unit."""

    def eos(self) -> int:
        """Token id of the end of a sentence."""


@dataclass(frozen=True)
class PreparedSentence:
    """One line of a test set: texts as people read them, and their sub-word units.

    Of speech, `source` names the recording and `utterances` holds its frames.
    """

    id: int
    source: str
    reference: str | None
    source_pieces: list[str]
    reference_pieces: list[str] | None
    utterances: UtteranceFile | None = None

    @property
    def expected_tokens(self) -> int:
        """About how many tokens a hypothesis has, with EOS; frames are not read for it."""
        if self.utterances is None:
            return len(self.source_pieces) + 1
        return int(self.utterances.n_frame[self.id]) // _FRAMES_A_TOKEN + 1

    def encoded(self, source: Dictionary, target: Dictionary) -> Sentence:
        """The same sentence as token ids with EOS; frames for a source of speech."""
        speech, reference = self.utterances, self.reference_pieces
        return Sentence(
            self.id,
            token_ids(self.source_pieces, source) if speech is None else speech.features(self.id),
            None if reference is None else token_ids(reference, target),
        )


class TestSetFile(Sequence[PreparedSentence]):
    """The sentences of a {role}.jsonl file in the order of their ids, read when asked for."""

    def __init__(
        self, path: Path, line_start: array[int], utterances: UtteranceFile | None
    ) -> None:
        self._path = path
        self._line_start = line_start
        self._utterances = utterances

    def __len__(self) -> int:
        return len(self._line_start)

    def __iter__(self) -> Iterator[PreparedSentence]:
        return self._read(0, len(self))

    @overload
    def __getitem__(self, place: int) -> PreparedSentence: ...
    @overload
    def __getitem__(self, place: slice) -> list[PreparedSentence]: ...
    def __getitem__(self, place: int | slice) -> PreparedSentence | list[PreparedSentence]:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            return list(self._read(start, stop))
        return next(self._read(range(len(self))[place], len(self)))

    def _read(self, start: int, stop: int) -> Iterator[PreparedSentence]:
        with self._path.open("rb") as file:
            if start < stop:
                file.seek(self._line_start[start])
            for place in range(start, stop):
                sentence = _parsed(file.readline(), f"{self._path}, line {place + 1}")
                yield replace(sentence, utterances=self._utterances)


def read_test_set(path: Path) -> TestSetFile:
    """The sentences of a {role}.jsonl file, checked; in memory is only where each line starts.

    Of speech, a {role}.h5 beside it has the features. Raises DataError, naming file and line, where
    a line is not such a sentence or an id is not the line's position counted from 0, and where
    there are features of another number of utterances.
    """
    features = path.with_suffix(".h5")
    utterances = UtteranceFile(features) if features.is_file() else None
    line_start = array("q")
    start = 0
    with path.open("rb") as file:
        for place, line in enumerate(file):
            sentence = _parsed(line, f"{path}, line {place + 1}")
            if sentence.id != place:
                raise DataError(f"{path}, line {place + 1}: id must be {place}, got {sentence.id}")
            line_start.append(start)
            start += len(line)
    if not line_start:
        raise DataError(f"{path} must hold at least one sentence, got an empty file")
    if utterances is not None and len(utterances) != len(line_start):
        raise DataError(
            f"{features} must hold the {len(line_start)} utterances of {path}, "
            f"got {len(utterances)}"
        )
    return TestSetFile(path, line_start, utterances)


def _parsed(line: bytes, where: str) -> PreparedSentence:
    try:
        fields: dict[str, Any] = json.loads(line)
        return PreparedSentence(
            fields["id"],
            fields["source"],
            fields["reference"],
            fields["source_pieces"],
            fields["reference_pieces"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{where} must be a sentence as JSON, "
            f"got {line.decode('utf-8', 'replace').strip()!r}: {error!r}"
        ) from None


def token_ids(pieces: Sequence[str], dictionary: Dictionary) -> list[int]:
    """The ids of sub-word units, with EOS."""
    return [*(int(dictionary.index(piece)) for piece in pieces), int(dictionary.eos())]

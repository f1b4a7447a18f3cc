"""A prepared test set, read and turned into token ids and frames."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import DataError
from pipeline.fairseq_bridge.corpus.utterances import UtteranceFile

# Padded source tokens or frames a batch, for each sentence that it may hold: long sentences come in
# smaller batches, since attention grows with the square of their length.
_TOKENS_A_SENTENCE = 64
_FRAMES_A_SENTENCE = 800

Frames = NDArray[np.float32]
Source = Sequence[int] | Frames


@dataclass(frozen=True)
class Sentence:
    """A sentence of a test set: a source of token ids with EOS or of frames [frame, bin].

    Its target is token ids with EOS; None: there is no reference.
    """

    id: int
    source: Source
    target: list[int] | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to decode: no frame, no token but EOS."""
        return len(self.source) == (0 if isinstance(self.source, np.ndarray) else 1)


def padded(rows: Sequence[Source], pad: int) -> Tensor:
    """Token ids [sentence, token] or frames [sentence, frame, bin], padded at the right.

    Frames are padded with NaN.
    """
    if isinstance(rows[0], np.ndarray):
        frames = [torch.from_numpy(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(frames, batch_first=True, padding_value=torch.nan)
    tokens = torch.full((len(rows), max(len(row) for row in rows)), pad)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = torch.tensor(row)
    return tokens


def batches(sentences: Sequence[Sentence], batch_sentences: int) -> Iterator[list[Sentence]]:
    """Batches of sentences of like length: longest source first, then by id.

    The plan depends on the sentences and on batch_sentences alone.
    """
    batch: list[Sentence] = []
    for sentence in sorted(sentences, key=lambda one: (-len(one.source), one.id)):
        is_speech = isinstance(sentence.source, np.ndarray)
        most = batch_sentences * (_FRAMES_A_SENTENCE if is_speech else _TOKENS_A_SENTENCE)
        full = len(batch) == batch_sentences
        if batch and (full or (len(batch) + 1) * len(batch[0].source) > most):
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch


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


def unknown_units(
    sentences: Iterable[PreparedSentence], source: Dictionary, target: Dictionary
) -> str:
    """How many units of sources and references are decoded as unknown, in words."""
    known = {"source": set(source.symbols), "reference": set(target.symbols)}
    unknown = dict.fromkeys(known, 0)
    total = dict.fromkeys(known, 0)
    for sentence in sentences:
        pieces = {"source": sentence.source_pieces, "reference": sentence.reference_pieces or []}
        for side, units in pieces.items():
            total[side] += len(units)
            unknown[side] += sum(unit not in known[side] for unit in units)
    return " and ".join(f"{unknown[side]} of {total[side]} {side} units" for side in known)

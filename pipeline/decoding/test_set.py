"""Read prepared test sets, encode their sentences and form batches."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.data.speech.waveforms import WaveformFile
from pipeline.errors import DataError
from pipeline.fairseq_bridge.corpus.utterances import UtteranceFile

if TYPE_CHECKING:
    from pipeline.decoding.tokenizer import Tokenizer

# Padded source tokens or frames per batch, for each sentence that it may hold. Batches of long
# sentences are smaller, because attention grows with the square of the length.
_TOKENS_PER_SENTENCE = 64
_FRAMES_PER_SENTENCE = 800
# Approximate number of 10 ms frames per subword of speech.
_FRAMES_PER_TOKEN = 20

Frames = NDArray[np.float32]
Source = Sequence[int] | Frames


@dataclass(frozen=True)
class Sentence:
    """A sentence to decode.

    source: token ids with control tokens such as EOS, or frames [frame, bin] for speech; [] if
    there is nothing to decode. target: token ids with EOS, or None if there is no reference.
    """

    id: int
    source: Source
    target: list[int] | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to decode: no frame, or no token."""
        return len(self.source) == 0


# Fills short sources of models without a padding token. No token has this id.
NO_TOKEN = -1


def padded(rows: Sequence[Source], pad: int | None) -> Tensor:
    """Token ids [sentence, token] or frames [sentence, frame, bin], padded at the right.

    Frames are padded with NaN, tokens with -1 if `pad` is None.
    """
    if isinstance(rows[0], np.ndarray):
        frames = [torch.from_numpy(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(frames, batch_first=True, padding_value=torch.nan)
    fill = NO_TOKEN if pad is None else pad
    tokens = torch.full((len(rows), max(len(row) for row in rows)), fill)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row, dtype=torch.long)
    return tokens


def batches(sentences: Sequence[Sentence], batch_sentences: int) -> Iterator[list[Sentence]]:
    """Yield batches of sentences of similar length: longest source first, then by id.

    The batches depend only on the sentences and on batch_sentences.
    """
    batch: list[Sentence] = []
    for sentence in sorted(sentences, key=lambda sentence: (-len(sentence.source), sentence.id)):
        is_speech = isinstance(sentence.source, np.ndarray)
        size = batch_sentences * (_FRAMES_PER_SENTENCE if is_speech else _TOKENS_PER_SENTENCE)
        full = len(batch) == batch_sentences
        if batch and (full or (len(batch) + 1) * len(batch[0].source) > size):
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch


class Dictionary(Protocol):
    """The part of a vocabulary that decoding uses; unknown subwords have the index of `<unk>`."""

    symbols: list[str]

    def __len__(self) -> int:
        """Number of tokens."""

    def index(self, sym: str) -> int:
        """Token id of a subword."""

    def bos(self) -> int:
        """Token id of the symbol `<s>`."""

    def pad(self) -> int:
        """Token id of padding."""

    def eos(self) -> int:
        """Token id of EOS."""


@dataclass(frozen=True)
class PreparedSentence:
    """One line of a prepared test set: detokenised texts and their subwords.

    For speech, `source` is the name of the recording, and `utterances` holds its frames, or its
    waveform for models that compute features of their own. `group` and `original` name what it
    comes from and the sentence that it is or was made from.
    """

    id: int
    source: str
    reference: str | None
    source_subwords: list[str]
    reference_subwords: list[str] | None
    group: str | None = None
    original: str | None = None
    utterances: UtteranceFile | WaveformFile | None = None

    @property
    def expected_tokens(self) -> int:
        """Approximate length of a hypothesis, with EOS; does not read the frames."""
        if self.utterances is None:
            return len(self.source_subwords) + 1
        return int(self.utterances.n_frame[self.id]) // _FRAMES_PER_TOKEN + 1

    def encoded(self, tokenizer: Tokenizer) -> Sentence:
        """The sentence as the models take it: token ids, or for speech the source as frames."""
        return Sentence(self.id, tokenizer.source(self), tokenizer.target(self))


class TestSetFile(Sequence[PreparedSentence]):
    """The sentences of a {role}.jsonl file in the order of their ids, read on access."""

    def __init__(
        self,
        path: Path,
        line_offset: array[int],
        utterances: UtteranceFile | WaveformFile | None,
    ) -> None:
        self._path = path
        self._line_offset = line_offset
        self._utterances = utterances

    def __len__(self) -> int:
        return len(self._line_offset)

    def __iter__(self) -> Iterator[PreparedSentence]:
        return self._read(0, len(self))

    @overload
    def __getitem__(self, index: int) -> PreparedSentence: ...
    @overload
    def __getitem__(self, index: slice) -> list[PreparedSentence]: ...
    def __getitem__(self, index: int | slice) -> PreparedSentence | list[PreparedSentence]:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return list(self._read(start, stop))
        return next(self._read(range(len(self))[index], len(self)))

    def _read(self, start: int, stop: int) -> Iterator[PreparedSentence]:
        with self._path.open("rb") as file:
            if start < stop:
                file.seek(self._line_offset[start])
            for index in range(start, stop):
                sentence = _parsed(file.readline(), f"{self._path}, line {index + 1}")
                yield replace(sentence, utterances=self._utterances)


def read_test_set(path: Path) -> TestSetFile:
    """Open and check a {role}.jsonl file; only the offsets of its lines are kept in memory.

    For speech, {role}.h5 beside it holds features or waveforms. Raises DataError naming file and
    line if a line is not a prepared sentence, if ids do not count from 0, or if the number of
    utterances differs.
    """
    sound = path.with_suffix(".h5")
    utterances: UtteranceFile | WaveformFile | None = None
    if sound.is_file():
        utterances = (WaveformFile if WaveformFile.is_one(sound) else UtteranceFile)(sound)
    line_offset = array("q")
    offset = 0
    with path.open("rb") as file:
        for index, line in enumerate(file):
            where = f"{path}, line {index + 1}"
            sentence = _parsed(line, where)
            if sentence.id != index:
                raise DataError(
                    f"{where}: id must be {index} (got {sentence.id}). "
                    f"Run python -m stages.prepare again."
                )
            line_offset.append(offset)
            offset += len(line)
    if not line_offset:
        raise DataError(f"{path}: no sentences. Run python -m stages.prepare again.")
    if utterances is not None and len(utterances) != len(line_offset):
        raise DataError(
            f"{sound}: must hold the {len(line_offset)} utterances of {path.name} "
            f"(got {len(utterances)}). Run python -m stages.prepare again."
        )
    return TestSetFile(path, line_offset, utterances)


def _parsed(line: bytes, where: str) -> PreparedSentence:
    try:
        fields: dict[str, Any] = json.loads(line)
        return PreparedSentence(
            fields["id"],
            fields["source"],
            fields["reference"],
            fields["source_pieces"],
            fields["reference_pieces"],
            fields["group"],
            fields["original"],
        )
    except (ValueError, KeyError, TypeError) as error:
        text = line.decode("utf-8", "replace").strip()
        raise DataError(
            f"{where}: not a prepared sentence in JSON ({error!r} in {text!r}). "
            f"Run python -m stages.prepare again."
        ) from None


def token_ids(subwords: Sequence[str], dictionary: Dictionary) -> list[int]:
    """Token ids of subwords, with EOS."""
    return [*(int(dictionary.index(subword)) for subword in subwords), int(dictionary.eos())]


def unknown_subwords(
    sentences: Iterable[PreparedSentence], source: Dictionary, target: Dictionary
) -> str:
    """Describe in words how many subwords of each side are not in the vocabularies."""
    known = {"source": set(source.symbols), "reference": set(target.symbols)}
    unknown = dict.fromkeys(known, 0)
    total = dict.fromkeys(known, 0)
    for sentence in sentences:
        sides = {
            "source": sentence.source_subwords,
            "reference": sentence.reference_subwords or [],
        }
        for side, subwords in sides.items():
            total[side] += len(subwords)
            unknown[side] += sum(subword not in known[side] for subword in subwords)
    return " and ".join(f"{unknown[side]} of {total[side]} {side} subwords" for side in known)

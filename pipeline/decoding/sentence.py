"""What is decoded: sentences as token ids or frames, and the order in which they are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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

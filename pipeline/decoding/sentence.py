"""What is decoded: sentences as token ids, and the fixed order in which they are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# Padded source tokens a batch, for each sentence that it may hold: long sentences come in smaller
# batches, since attention grows with the square of their length.
_TOKENS_A_SENTENCE = 64


@dataclass(frozen=True)
class Sentence:
    """A sentence of a test set as token ids, EOS last in both; no target: there is no reference."""

    id: int
    source: list[int]
    target: list[int] | None


def padded(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Token ids [sentence, token], padded at the right."""
    tokens = torch.full((len(rows), max(len(row) for row in rows)), pad)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = torch.tensor(row)
    return tokens


def batches(sentences: Sequence[Sentence], batch_sentences: int) -> Iterator[list[Sentence]]:
    """Batches of sentences of like length: longest source first, then by id.

    The plan depends on the sentences and on batch_sentences alone.
    """
    most_tokens = batch_sentences * _TOKENS_A_SENTENCE
    batch: list[Sentence] = []
    for sentence in sorted(sentences, key=lambda one: (-len(one.source), one.id)):
        full = len(batch) == batch_sentences
        if batch and (full or (len(batch) + 1) * len(batch[0].source) > most_tokens):
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch

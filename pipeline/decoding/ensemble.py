"""Any models with one vocabulary as an ensemble: members run in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.decoding.model import EnsembleModel, MemberModel
from pipeline.errors import DataError
from pipeline.fairseq_bridge.models import FairseqMember
from pipeline.fairseq_bridge.stacked import StackedTransformers, can_stack


def as_ensemble(members: Sequence[FairseqMember]) -> EnsembleModel:
    """The fastest way to run these members together; the results are the same up to rounding."""
    return StackedTransformers(members) if can_stack(members) else MembersInTurn(members)


class MembersInTurn:
    """An EnsembleModel of MemberModels, of one architecture or of several.

    Raises DataError where their vocabularies differ in size.
    """

    def __init__(self, members: Sequence[MemberModel]) -> None:
        sizes = [member.vocab_size for member in members]
        if len(set(sizes)) != 1:
            raise DataError(f"members must have one vocabulary size, got {sizes}")
        self._members = list(members)
        self.n_member = len(members)
        self.vocab_size = sizes[0]
        self.pad, self.eos = members[0].pad, members[0].eos
        self.max_source_tokens = min(member.max_source_tokens for member in members)
        self.max_target_tokens = min(member.max_target_tokens for member in members)

    def encode(self, source: Tensor, beam: int) -> list[Any]:
        """State of `beam` rows a sentence for every member; source [sentence, token]."""
        return [member.encode(source, beam) for member in self._members]

    def step(self, state: list[Any], prefix: Tensor) -> Tensor:
        """Logits of the next token [row, member, vocab] after prefix [row, token]."""
        each = [member.step(one, prefix) for member, one in zip(self._members, state, strict=True)]
        return torch.stack(each, dim=1)

    def reorder(self, state: list[Any], row: Tensor) -> list[Any]:
        """State of the rows row [new row]."""
        return [member.reorder(one, row) for member, one in zip(self._members, state, strict=True)]

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, member, vocab], one sentence after the other."""
        each = [member.force(source, prefix, length) for member in self._members]
        for sentence in zip(*each, strict=True):
            yield torch.stack(sentence, dim=1)

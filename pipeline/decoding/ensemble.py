"""Any models with one vocabulary as an ensemble: members run in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.decoding.model import EnsembleModel, MemberModel
from pipeline.errors import DataError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.fairseq_bridge.members.stacked import StackedTransformers, can_stack


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
        first = members[0]
        self.pad, self.eos, self.unk = first.pad, first.eos, first.unk
        self.max_source_tokens = min(member.max_source_tokens for member in members)
        self.max_target_tokens = min(member.max_target_tokens for member in members)

    def encode(self, source: Tensor) -> list[Any]:
        """State of one row a sentence for every member; source [sentence, token]."""
        return [member.encode(source) for member in self._members]

    def step(self, state: list[Any], prefix: Tensor) -> Tensor:
        """Logits of the next token [row, member, vocab] after prefix [row, token]."""
        each = [member.step(one, prefix) for member, one in zip(self._members, state, strict=True)]
        return torch.stack(each).transpose(0, 1)

    def reorder(self, state: list[Any], row: Tensor, beam: int) -> list[Any]:
        """State of the rows row [new row], from now on `beam` of a sentence."""
        return [
            member.reorder(one, row, beam) for member, one in zip(self._members, state, strict=True)
        ]

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, member, vocab], one sentence after the other."""
        each = [member.force(source, prefix, length) for member in self._members]
        for sentence in zip(*each, strict=True):
            yield torch.stack(sentence, dim=1)


class MembersOneAtATime:
    """A ScoringModel of members that do not fit in memory together: each is loaded for its turn.

    Raises DataError where their vocabularies differ in size.
    """

    def __init__(self, load: Sequence[Callable[[], MemberModel]]) -> None:
        self._load = list(load)
        self.n_member = len(load)
        first = self._load[0]()
        self.vocab_size = first.vocab_size
        self.pad, self.eos, self.unk = first.pad, first.eos, first.unk
        self.max_source_tokens = first.max_source_tokens
        self.max_target_tokens = first.max_target_tokens
        del first
        for place in range(1, self.n_member):
            member = self._load[place]()
            if member.vocab_size != self.vocab_size:
                raise DataError(
                    f"members must have one vocabulary size, got {self.vocab_size} and "
                    f"{member.vocab_size}"
                )
            self.max_source_tokens = min(self.max_source_tokens, member.max_source_tokens)
            self.max_target_tokens = min(self.max_target_tokens, member.max_target_tokens)

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, member, vocab], one sentence after the other."""
        each = [list(load().force(source, prefix, length)) for load in self._load]
        for sentence in zip(*each, strict=True):
            yield torch.stack(sentence, dim=1)

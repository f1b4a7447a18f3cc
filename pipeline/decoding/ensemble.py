"""Ensembles of models with one vocabulary: all in memory, or loaded one at a time."""

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
    """The fastest way to run these members together; results are the same up to rounding."""
    return StackedTransformers(members) if can_stack(members) else MembersInTurn(members)


class MembersInTurn:
    """An EnsembleModel of members in memory that run one after the other.

    The members may have different architectures.

    Raises DataError if their vocabularies differ in size.
    """

    def __init__(self, members: Sequence[MemberModel]) -> None:
        first = members[0]
        for member in members:
            _check_vocabulary(first.vocab_size, member)
        self._members = list(members)
        self.n_member = len(members)
        self.vocab_size = first.vocab_size
        self.pad, self.eos, self.unk = first.pad, first.eos, first.unk
        self.max_source_tokens = min(member.max_source_tokens for member in members)
        self.max_target_tokens = min(member.max_target_tokens for member in members)

    def encode(self, source: Tensor) -> list[Any]:
        """Decoder states of all members, with one row per sentence; source [sentence, token]."""
        return [member.encode(source) for member in self._members]

    def step(self, state: list[Any], prefix: Tensor) -> Tensor:
        """Logits of the next token [row, member, vocab] after prefix [row, token]."""
        logits = [
            member.step(member_state, prefix)
            for member, member_state in zip(self._members, state, strict=True)
        ]
        return torch.stack(logits).transpose(0, 1)

    def reorder(self, state: list[Any], row: Tensor, beam: int) -> list[Any]:
        """States of the selected rows row [new row]; from now on a sentence has `beam` rows."""
        return [
            member.reorder(member_state, row, beam)
            for member, member_state in zip(self._members, state, strict=True)
        ]

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token under teacher forcing: [token, member, vocab] per sentence."""
        logits = [member.force(source, prefix, length) for member in self._members]
        for sentence in zip(*logits, strict=True):
            yield torch.stack(sentence, dim=1)


class MembersOneAtATime:
    """A ScoringModel of members that do not fit in memory together: each is loaded when needed.

    Raises DataError if their vocabularies differ in size.
    """

    def __init__(self, load: Sequence[Callable[[], MemberModel]]) -> None:
        self._load = list(load)
        self.n_member = len(load)
        first = self._load[0]()
        self.vocab_size = first.vocab_size
        self.pad, self.eos, self.unk = first.pad, first.eos, first.unk
        self.max_source_tokens = first.max_source_tokens
        self.max_target_tokens = first.max_target_tokens
        del first  # at most one member is in memory
        for load_member in self._load[1:]:
            member = load_member()
            _check_vocabulary(self.vocab_size, member)
            self.max_source_tokens = min(self.max_source_tokens, member.max_source_tokens)
            self.max_target_tokens = min(self.max_target_tokens, member.max_target_tokens)

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token under teacher forcing: [token, member, vocab] per sentence."""
        logits = [list(load().force(source, prefix, length)) for load in self._load]
        for sentence in zip(*logits, strict=True):
            yield torch.stack(sentence, dim=1)


def _check_vocabulary(vocab_size: int, member: MemberModel) -> None:
    if member.vocab_size != vocab_size:
        raise DataError(
            f"ensemble: members must have vocabularies of the same size (got {vocab_size} and "
            f"{member.vocab_size}). Train them on the same prepared data."
        )

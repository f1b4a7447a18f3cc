"""Ensembles of models with one vocabulary: all in memory, or loaded one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.decoding.model import EnsembleModel, MemberModel
from pipeline.errors import DataError


def as_ensemble(members: Sequence[MemberModel]) -> EnsembleModel:
    """The fastest way to run these members together; results are the same up to rounding.

    A model that can run together with others of its kind has a method `stacked(members)`, which
    returns the EnsembleModel, or None if these members do not fit together.
    """
    stacked = getattr(members[0], "stacked", None)
    together: EnsembleModel | None = None if stacked is None else stacked(members)
    return MembersInTurn(members) if together is None else together


class _Attributes:
    """The attributes of a MemberModel that members have in common; the shortest limits apply."""

    def __init__(self, first: MemberModel) -> None:
        self.vocab_size = first.vocab_size
        self.eos, self.pad, self.unk, self.start = first.eos, first.pad, first.unk, first.start
        self.max_source_tokens = first.max_source_tokens
        self.max_target_tokens = first.max_target_tokens
        self.max_shared_tokens = first.max_shared_tokens

    def _include(self, member: MemberModel) -> None:
        if member.vocab_size != self.vocab_size:
            raise DataError(
                f"ensemble: members must have vocabularies of the same size (got {self.vocab_size} "
                f"and {member.vocab_size}). Train them on the same prepared data."
            )
        for name in ("eos", "pad", "unk", "start"):
            own, other = getattr(self, name), getattr(member, name)
            if own != other:
                raise DataError(
                    f"ensemble: members must have the same control tokens (got {name} {own} and "
                    f"{other}). Choose members with one tokenizer."
                )
        self.max_source_tokens = min(self.max_source_tokens, member.max_source_tokens)
        self.max_target_tokens = min(self.max_target_tokens, member.max_target_tokens)
        shared = (self.max_shared_tokens, member.max_shared_tokens)
        self.max_shared_tokens = min((limit for limit in shared if limit is not None), default=None)


class MembersInTurn(_Attributes):
    """An EnsembleModel of members in memory that run one after the other.

    The members may have different architectures.

    Raises DataError if their vocabularies differ in size, or their control tokens differ.
    """

    def __init__(self, members: Sequence[MemberModel]) -> None:
        super().__init__(members[0])
        for member in members:
            self._include(member)
        self._members = list(members)
        self.n_member = len(members)

    def suppressed(self, n_token: int) -> Sequence[int]:
        """Token ids, besides pad, that are never chosen after a hypothesis of n_token tokens."""
        return self._members[0].suppressed(n_token)

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


class MembersOneAtATime(_Attributes):
    """A ScoringModel of members that do not fit in memory together: each is loaded when needed.

    Raises DataError if their vocabularies differ in size, or their control tokens differ.
    """

    def __init__(self, load: Sequence[Callable[[], MemberModel]]) -> None:
        self._load = list(load)
        self.n_member = len(load)
        super().__init__(self._load[0]())
        for load_member in self._load[1:]:
            self._include(load_member())  # at most one member is in memory

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token under teacher forcing: [token, member, vocab] per sentence."""
        logits = [list(load().force(source, prefix, length)) for load in self._load]
        for sentence in zip(*logits, strict=True):
            yield torch.stack(sentence, dim=1)

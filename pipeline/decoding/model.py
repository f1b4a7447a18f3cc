"""What the search needs of models: encode, step, reorder, force. A model family is one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from torch import Tensor


class MemberModel(Protocol):
    """One model. A row is a prefix under search; a sentence owns rows in succession.

    pad, eos and unk are token ids; eos also starts every prefix, as in fairseq.
    """

    vocab_size: int
    pad: int
    eos: int
    unk: int
    max_source_tokens: int
    max_target_tokens: int

    def encode(self, source: Tensor) -> Any:
        """State of one row a sentence; source [sentence, token], or [sentence, frame, bin].

        It is padded at the right, frames with NaN.
        """

    def step(self, state: Any, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, vocab] after prefix [row, token], one token longer a call.

        Anything in float32 whose softmax over the vocabulary is P, so log-probabilities too; valid
        until the next call.
        """

    def reorder(self, state: Any, row: Tensor, beam: int) -> Any:
        """State of the rows row [new row], from now on `beam` of a sentence in succession."""

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, vocab], one sentence after the other.

        prefix [sentence, token] starts with the start symbol and is filled up at the right with
        any token; length [sentence] counts its own.
        """


class ScoringModel(Protocol):
    """Members that can score what is given; see MemberModel and EnsembleModel."""

    vocab_size: int
    pad: int
    eos: int
    unk: int
    max_source_tokens: int
    max_target_tokens: int
    n_member: int

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, member, vocab], one sentence after the other."""


class EnsembleModel(MemberModel, ScoringModel, Protocol):
    """Members behind the interface of one: what they return has a member axis before vocab.

    So step gives [row, member, vocab] and force [token, member, vocab]. How members run behind it,
    in turn or batched along the member axis, is not seen from outside.
    """

    n_member: int


# Token distributions of all members that are held at once: where one member is in memory at a time,
# those of the others wait for it.
_CHUNK_VALUES = 2**28


def chunks(model: ScoringModel, n_token: Sequence[int], most: int) -> Iterator[slice]:
    """Successive items of a sequence, n_token [item], whose distributions are computed at once.

    At most `most` items a chunk, and one at least.
    """
    most_tokens = _CHUNK_VALUES // (model.n_member * model.vocab_size)
    start, total = 0, 0
    for place, count in enumerate(n_token):
        if place > start and (total + count > most_tokens or place - start == most):
            yield slice(start, place)
            start, total = place, 0
        total += count
    if start < len(n_token):
        yield slice(start, len(n_token))

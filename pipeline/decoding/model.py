"""The interfaces that decoding works with: models, which give logits, and searches, which use them.

A new model family implements `MemberModel`; a new search is a function of type `Search`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any, Protocol

from torch import Tensor

from pipeline.decoding.test_set import Sentence
from pipeline.run.settings import DecodeConfig
from pipeline.store import Hypothesis


class MemberModel(Protocol):
    """One model. A row is a target prefix; the rows of a sentence are consecutive.

    - eos, pad, unk: token ids. pad fills short sources and is never chosen; if it is None, they are
      filled with -1. It may be eos, which can then be chosen. unk is None if no token is unknown.
    - start: the tokens that every prefix begins with, such as EOS in fairseq's models. They are not
      part of a hypothesis. A causal model, whose source is its prompt, has none.
    - max_source_tokens, max_target_tokens: limits of a source, and of a target with EOS.
      max_shared_tokens: a limit of both together, None if there is none.
    """

    vocab_size: int
    eos: int
    pad: int | None
    unk: int | None
    start: tuple[int, ...]
    max_source_tokens: int
    max_target_tokens: int
    max_shared_tokens: int | None

    def suppressed(self, n_token: int) -> Sequence[int]:
        """Token ids, besides pad, that are never chosen after a hypothesis of n_token tokens."""

    def encode(self, source: Tensor) -> Any:
        """Encode a batch and return the decoder state of one row per sentence.

        source [sentence, token], or [sentence, frame, bin] for speech; padded at the right, frames
        with NaN. Rows come and go: a batch is all sentences at first, and those that are not done
        later on. What is returned for a sentence must not depend on the others.
        """

    def step(self, state: Any, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, vocab] after prefix [row, token].

        In the first call of a state, prefix is `start` in every row; in each further call it is
        one token longer. The softmax of the logits over the vocabulary
        is the member's distribution, so log-probabilities will do. The result may have half
        precision and be on any device, where it stays: posteriors and statistics are computed there
        in float32. It is valid until the next call.
        """

    def reorder(self, state: Any, row: Tensor, beam: int) -> Any:
        """State of the selected rows row [new row]; from now on each sentence has `beam` rows."""

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token under teacher forcing: [token, vocab] per sentence.

        prefix [sentence, token] is `start` and the target without its last token, padded at the
        right with any token; length [sentence] counts the tokens of each target.
        """


class ScoringModel(Protocol):
    """Members that can score given targets. Attributes as in `MemberModel`."""

    vocab_size: int
    eos: int
    pad: int | None
    unk: int | None
    start: tuple[int, ...]
    max_source_tokens: int
    max_target_tokens: int
    max_shared_tokens: int | None
    n_member: int

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token under teacher forcing: [token, member, vocab] per sentence."""


class EnsembleModel(MemberModel, ScoringModel, Protocol):
    """An ensemble behind the interface of a single model, with a member axis before vocab.

    `step` returns [row, member, vocab] and `force` returns [token, member, vocab]. Whether the
    members run one after the other or batched along the member axis is an implementation detail.
    """

    n_member: int


def target_limit(source: Sized, model: ScoringModel) -> int:
    """Maximum number of tokens of a target, with EOS, that a model takes after a source."""
    if model.max_shared_tokens is None:
        return model.max_target_tokens
    return min(model.max_target_tokens, model.max_shared_tokens - len(source))


class Search(Protocol):
    """Finds, draws or scores the hypotheses of a batch; `decode._target_` names one.

    Arguments: the model, an `EnsembleModel`; the sentences of the batch, with token ids or frames
    as source; combination (prex, expr or member), the posterior to use; the settings of the group
    `decode`, where `decode.settings` is free for a search of your own.

    Returns one list per sentence, in the order of `sentences`; a list may be empty. Each list is
    ordered by score, best first. Samples stay in the order of drawing; with combination=member,
    those of the first member come first. Of each `Hypothesis`:

    - token_id [token]: target ids without the start symbol. A finished hypothesis ends with EOS,
      which occurs nowhere else.
    - finished: False if the hypothesis was cut at the length limit; it then has no EOS.
    - score: ln P(y) / L ** decode.length_penalty under the posterior that was searched (for
      combination=member: under the member that drew it). L counts EOS. The uncertainty stage
      compares scores with the token log-probs, unless decode.unk_penalty is set.
    - statistics: computed from the softmax of the members' logits, before any score mask, penalty,
      temperature or truncation. `score_targets` computes them for any token sequences.
    - text: left empty; the decode stage detokenises.
    - member: the index of the member that drew the hypothesis if combination=member, else -1.

    The result of a sentence must not depend on the other sentences of the batch, nor on their
    order; `decode.self_check=true` tests this. Random numbers are therefore seeded with
    decode.seed and the sentence's id. Statistics that are NaN or out of range are rejected.
    """

    def __call__(
        self,
        model: Any,
        sentences: Sequence[Sentence],
        combination: str,
        decode: DecodeConfig,
        /,
    ) -> Sequence[Sequence[Hypothesis]]:
        """Return the hypotheses of each sentence."""

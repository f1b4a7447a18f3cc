"""The rules of ending a beam: when a sentence is done, and which hypotheses are kept."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipeline.run.settings import DecodeConfig


class FinishedScores:
    """The scores of the best `decode.beam` hypotheses that have finished, for each sentence.

    max_length [sentence]: of a hypothesis with EOS. A sentence is done if `decode.beam` hypotheses
    have finished and, depending on `decode.ending`,

    - fairseq, early: without a further condition;
    - heuristic: if the best prefix does not have a better score than the worst of them, with the
      length penalty of its present length;
    - never: the same with the length penalty of the maximum length, which is the best score that
      the prefix can reach, if the penalty is positive.

    The last three are those of Hugging Face's `early_stopping`: True, False and "never".
    """

    def __init__(self, decode: DecodeConfig, n_sentence: int, max_length: Tensor) -> None:
        self._ending = decode.ending
        self._length_penalty = decode.length_penalty
        self._max_length = max_length
        self._score = torch.full((n_sentence, decode.beam), -torch.inf)

    def add(self, sentence: Sequence[int], logprob_nats: Tensor, length: int) -> None:
        """Add hypotheses of `length` tokens; logprob_nats [sentence, candidate], -inf for none."""
        score = logprob_nats / length**self._length_penalty
        merged = torch.cat([self._score[sentence], score], dim=1)
        self._score[sentence] = merged.topk(self._score.shape[1], dim=1).values

    def is_done(self, sentence: Sequence[int], best_prefix: Tensor, length: int) -> Tensor:
        """Whether each sentence is done [sentence].

        best_prefix [sentence]: the largest ln P of its prefixes, of `length` tokens.
        """
        worst = self._score[sentence, -1]
        is_full = worst.isfinite()
        if self._ending in ("fairseq", "early"):
            return is_full
        longest = torch.full_like(worst, length)
        if self._ending == "never" and self._length_penalty > 0:
            longest = self._max_length[sentence].to(worst)
        return is_full & (best_prefix / longest**self._length_penalty <= worst)

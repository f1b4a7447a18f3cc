"""Scoring given targets under an ensemble, with the same statistics as the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pipeline.config import DecodeConfig
from pipeline.decoding.model import ScoringModel
from pipeline.decoding.posterior import (
    refuse_nan,
    sequence_logprob,
    statistics_columns,
    token_statistics,
)
from pipeline.decoding.sentence import Sentence, padded
from pipeline.store import Hypothesis


def score_targets(
    model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """The target of each sentence of a batch as its one hypothesis, with statistics.

    One pass of the decoders over the batch, not token by token. Score as in beam search, for the
    posterior `combination` (prex, expr). A sentence without a target, or with one that is longer
    than the models' positions, has no hypothesis. Texts are left empty. Raises DataError naming
    member and sentence for a log-probability that is NaN.
    """
    found: list[list[Hypothesis]] = [[] for _ in sentences]
    scored = [
        (place, one, one.target)
        for place, one in enumerate(sentences)
        if one.target is not None and len(one.target) <= model.max_target_tokens
    ]
    if not scored:
        return found
    source = padded([one.source for _, one, _ in scored], model.pad)
    # A decoder looks back only, so what fills up a short target is not seen and needs no mask.
    prefix = padded([[model.eos, *target[:-1]] for _, _, target in scored], model.eos)
    lengths = [len(target) for _, _, target in scored]
    with torch.inference_mode():
        each = model.force(source, prefix, lengths)
        for (place, sentence, target), logits in zip(scored, each, strict=True):
            logprob = logits.log_softmax(dim=2).cpu()
            found[place] = [_scored(sentence.id, logprob, target, combination, decode)]
    return found


def _scored(
    sentence_id: int, logprob: Tensor, target: list[int], combination: str, decode: DecodeConfig
) -> Hypothesis:
    """A target [token] as a hypothesis; logprob [token, member, vocab]."""
    refuse_nan(logprob, lambda _: sentence_id)
    n_token, n_member, _ = logprob.shape
    chosen = logprob[torch.arange(n_token), :, target]
    prefix = torch.cat([torch.zeros(1, n_member), chosen[:-1].cumsum(dim=0)])
    history = np.concatenate([chosen.numpy(), statistics_columns(logprob, prefix)], axis=1)
    score = sequence_logprob(chosen, combination) / n_token**decode.length_penalty
    statistics = token_statistics(history, n_member)
    return Hypothesis(np.array(target), "", score, finished=True, statistics=statistics)

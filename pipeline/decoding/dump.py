"""Token distributions for stores that keep more than statistics: all of them or the likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pipeline.config import DumpConfig
from pipeline.decoding.model import ScoringModel
from pipeline.decoding.sentence import padded
from pipeline.store import Hypothesis, TopK


def with_distributions(
    model: ScoringModel, source: Sequence[int], hypotheses: Sequence[Hypothesis], dump: DumpConfig
) -> list[Hypothesis]:
    """The hypotheses of one sentence with what `dump.kind` asks for.

    statistics: as they are; full: full_logprob in `dump.dtype`; topk: the `dump.k` likeliest tokens
    under PrEx. The search would have to carry whole distributions along with every prefix, so they
    are computed again here, by one pass of the decoders over the hypotheses.
    """
    if dump.kind == "statistics" or not hypotheses:
        return list(hypotheses)
    tokens = [one.token_id.tolist() for one in hypotheses]
    prefix = padded([[model.eos, *one[:-1]] for one in tokens], model.eos)
    sources = torch.tensor([list(source)] * len(tokens))
    with torch.inference_mode():
        each = model.force(sources, prefix, [len(one) for one in tokens])
        return [
            _with_distributions(hypothesis, logits.log_softmax(dim=2).cpu(), dump)
            for hypothesis, logits in zip(hypotheses, each, strict=True)
        ]


def _with_distributions(hypothesis: Hypothesis, logprob: Tensor, dump: DumpConfig) -> Hypothesis:
    """logprob [token, member, vocab] of a hypothesis."""
    if dump.kind == "full":
        return replace(hypothesis, full_logprob=logprob.numpy().astype(np.dtype(dump.dtype)))
    return replace(hypothesis, topk=_topk(logprob, min(dump.k, logprob.shape[2])))


def _topk(logprob: Tensor, k: int) -> TopK:
    token = torch.logsumexp(logprob, dim=1).topk(k, dim=1).indices
    index = token[:, None].expand(-1, logprob.shape[1], -1)
    tail = logprob.scatter(2, index, -torch.inf).logsumexp(dim=2)
    return TopK(token.numpy(), logprob.gather(2, index).numpy(), tail.numpy())

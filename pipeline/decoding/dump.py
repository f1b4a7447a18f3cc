"""Token distributions for stores that keep more than statistics: all of them or the likeliest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pipeline.decoding.model import ScoringModel, chunks
from pipeline.decoding.test_set import Sentence, padded
from pipeline.run.settings import DumpConfig
from pipeline.store import Hypothesis, TopK


def with_distributions(
    model: ScoringModel,
    sentences: Sequence[Sentence],
    found: Sequence[Sequence[Hypothesis]],
    dump: DumpConfig,
    most_sentences: int,
) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each sentence with what `dump.kind` asks for.

    statistics: as they are; full: full_logprob in `dump.dtype`; topk: the `dump.k` likeliest tokens
    under PrEx. The search would have to carry whole distributions along with every prefix, so they
    are computed again here, by one pass of the decoders over the hypotheses of at most
    `most_sentences`: members that do not fit in memory together are loaded once for it.
    """
    if dump.kind == "statistics":
        yield from map(list, found)
        return
    n_token = [sum(len(one.token_id) for one in best) for best in found]
    for chunk in chunks(model, n_token, most_sentences):
        each = _each_distribution(model, sentences[chunk], found[chunk])
        for best in found[chunk]:
            yield [_with_distributions(one, next(each), dump) for one in best]


def _each_distribution(
    model: ScoringModel, sentences: Sequence[Sentence], found: Sequence[Sequence[Hypothesis]]
) -> Iterator[Tensor]:
    """ln P_m [token, member, vocab] of one hypothesis after the other."""
    pairs = [
        (sentence.source, one.token_id.tolist())
        for sentence, best in zip(sentences, found, strict=True)
        for one in best
    ]
    if not pairs:
        return
    source = padded([one for one, _ in pairs], model.pad)
    prefix = padded([[model.eos, *tokens[:-1]] for _, tokens in pairs], model.eos)
    with torch.inference_mode():
        for logits in model.force(source, prefix, [len(tokens) for _, tokens in pairs]):
            yield logits.log_softmax(dim=2).cpu()


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

"""Teacher forcing: score given targets, and recompute the distributions that a dump stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pipeline.decoding.device import DistributionsOf, distributions_of
from pipeline.decoding.model import ScoringModel, target_limit
from pipeline.decoding.posterior import Distributions, sequence_logprob, statistics_of_columns
from pipeline.decoding.test_set import Sentence, Source, padded
from pipeline.run.settings import DecodeConfig, DumpConfig
from pipeline.store import Hypothesis, TopK

# Maximum number of log-probs that are in memory at once. If members are loaded one at a time, the
# distributions of all of them are kept until the last member has run.
_MAX_VALUES = 2**28


def teacher_forced(
    model: ScoringModel, sources: Sequence[Source], targets: Sequence[Sequence[int]]
) -> Iterator[Tensor]:
    """Yield the logits of every next token along each target: [token, member, vocab].

    They are on the device of the model. All targets are one batch: one pass of the decoders, not
    one per token.
    """
    if not targets:
        return
    source = padded(sources, model.pad)
    # Decoders only look back, so the padding after a short target needs no mask.
    prefix = padded([[*model.start, *target[:-1]] for target in targets], model.eos)
    yield from model.force(source, prefix, [len(target) for target in targets])


@torch.inference_mode()
def score_targets(
    model: ScoringModel,
    sentences: Sequence[Sentence],
    combination: str,
    decode: DecodeConfig,
    *,
    distributions: DistributionsOf = distributions_of,
) -> list[list[Hypothesis]]:
    """Score the target of each sentence of a batch as its only hypothesis, with statistics.

    The score is that of beam search under the posterior `combination` (prex or expr). A sentence
    without a target, or with one that is longer than the models allow, has no hypothesis. Texts
    are left empty. distributions: how they are computed; by default, the device of the logits
    decides. Raises NanLogprobError if a member returns NaN.
    """
    hypotheses: list[list[Hypothesis]] = [[] for _ in sentences]
    scorable = [
        (index, sentence, sentence.target)
        for index, sentence in enumerate(sentences)
        if sentence.target is not None
        and len(sentence.target) <= target_limit(sentence.source, model)
    ]
    sources = [sentence.source for _, sentence, _ in scorable]
    targets = [target for _, _, target in scorable]
    all_logits = teacher_forced(model, sources, targets)
    for (index, sentence, target), logits in zip(scorable, all_logits, strict=True):
        next_token = distributions(logits, decode)
        hypotheses[index] = [_scored(sentence.id, next_token, target, combination, decode)]
    return hypotheses


def _scored(
    sentence_id: int,
    next_token: Distributions,
    target: list[int],
    combination: str,
    decode: DecodeConfig,
) -> Hypothesis:
    """A target [token] as a hypothesis; next_token: the distributions along it."""
    next_token.reject_nan(lambda _: sentence_id)
    row = torch.arange(len(target))
    realised = next_token.token_logprob(row, torch.tensor(target))
    n_token, n_member = realised.shape
    prefix = torch.cat([torch.zeros(1, n_member), realised[:-1].cumsum(dim=0)])
    table = np.concatenate([realised.numpy(), next_token.statistics(row, prefix)], axis=1)
    score = sequence_logprob(realised, combination) / n_token**decode.length_penalty
    statistics = statistics_of_columns(table, n_member)
    return Hypothesis(np.array(target), "", score, finished=True, statistics=statistics)


def score_in_chunks(
    model: ScoringModel,
    sentences: Sequence[Sentence],
    combination: str,
    decode: DecodeConfig,
    *,
    distributions: DistributionsOf = distributions_of,
) -> list[list[Hypothesis]]:
    """Do the same as `score_targets` in bounded memory, even if members load one at a time."""
    n_token = [len(sentence.target or ()) for sentence in sentences]
    hypotheses = []
    for chunk in _chunks(model, n_token, len(sentences)):
        hypotheses += score_targets(
            model, sentences[chunk], combination, decode, distributions=distributions
        )
    return hypotheses


@torch.inference_mode()
def with_distributions(
    model: ScoringModel,
    sentences: Sequence[Sentence],
    hypotheses: Sequence[Sequence[Hypothesis]],
    dump: DumpConfig,
    decode: DecodeConfig,
    *,
    distributions: DistributionsOf = distributions_of,
) -> Iterator[list[Hypothesis]]:
    """Yield the hypotheses of each sentence with the distributions that `dump.kind` asks for.

    statistics: unchanged. full: with full_logprob in `dump.dtype`. topk: with the `dump.k` most
    probable tokens under PrEx. The distributions are computed again by teacher forcing, at most
    `decode.batch_sentences` sentences at a time, because the search would have to carry them along
    with every prefix. distributions: as of `score_targets`.
    """
    if dump.kind == "statistics":
        yield from map(list, hypotheses)
        return
    n_token = [sum(len(hypothesis.token_id) for hypothesis in best) for best in hypotheses]
    for chunk in _chunks(model, n_token, decode.batch_sentences):
        pairs = [
            (sentence.source, hypothesis.token_id.tolist())
            for sentence, best in zip(sentences[chunk], hypotheses[chunk], strict=True)
            for hypothesis in best
        ]
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        logits = teacher_forced(model, sources, targets)
        for best in hypotheses[chunk]:
            yield [
                _with_distribution(hypothesis, distributions(next(logits), decode), dump)
                for hypothesis in best
            ]


def _with_distribution(
    hypothesis: Hypothesis, next_token: Distributions, dump: DumpConfig
) -> Hypothesis:
    """A hypothesis with what the dump keeps of the distributions of its tokens."""
    if dump.kind == "full":
        dtype = getattr(torch, dump.dtype)
        full = torch.cat([logprob.to(dtype).cpu() for logprob in next_token.blocks()])
        return replace(hypothesis, full_logprob=full.numpy())
    parts = zip(*(_topk(logprob, dump.k) for logprob in next_token.blocks()), strict=True)
    return replace(hypothesis, topk=TopK(*(torch.cat(part).cpu().numpy() for part in parts)))


def _topk(logprob: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens [token, k], their log-probs [token, member, k] and those of the tail, on the device.

    logprob [token, member, vocab].
    """
    k = min(k, logprob.shape[2])
    token = torch.logsumexp(logprob, dim=1).topk(k, dim=1).indices
    index = token[:, None].expand(-1, logprob.shape[1], -1)
    tail = logprob.scatter(2, index, -torch.inf).logsumexp(dim=2)
    return token, logprob.gather(2, index), tail


def _chunks(model: ScoringModel, n_token: Sequence[int], max_items: int) -> Iterator[slice]:
    """Slices of consecutive items, n_token [item], whose distributions fit in memory together.

    A chunk has between one and `max_items` items.
    """
    max_tokens = _MAX_VALUES // (model.n_member * model.vocab_size)
    start, total = 0, 0
    for index, count in enumerate(n_token):
        if index > start and (total + count > max_tokens or index - start == max_items):
            yield slice(start, index)
            start, total = index, 0
        total += count
    if start < len(n_token):
        yield slice(start, len(n_token))

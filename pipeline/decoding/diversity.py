"""Diversity of the members of an ensemble, measured along the references of the dev set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.model import MemberModel, ScoringModel, target_limit
from pipeline.decoding.scoring import teacher_forced
from pipeline.decoding.test_set import Sentence, batches, read_test_set
from pipeline.decoding.tokenizer import Tokenizer
from pipeline.errors import PipelineError
from pipeline.run.settings import DecodeConfig

# Two members whose log-probs never differ by more are the same model up to rounding.
_SAME_NATS = 1e-4
# Lower log-probs are raised to this, so that every divergence is finite.
_LOWEST_NATS = -1000.0
# Enough for two significant digits, and measured within seconds.
_MAX_SENTENCES = 200


def diversity_on(
    test_set: Path,
    load: Mapping[str, Callable[[], MemberModel]],
    labels: Mapping[str, str],
    tokenizer: Tokenizer,
    decode: DecodeConfig,
) -> dict[str, Any]:
    """Compute `diversity` on the first 200 sentences of a .jsonl file.

    load: maps the name of a member to a function that loads it, and labels to its label. Members
    are in memory one at a time if `decode.search_members` is set, which means that they do not fit
    together.
    """
    loaders = list(load.values())
    model: ScoringModel
    if decode.search_members:
        model = MembersOneAtATime(loaders)
    else:
        model = as_ensemble([load_member() for load_member in loaders])
    prepared = read_test_set(test_set)[:_MAX_SENTENCES]
    sentences = [sentence.encoded(tokenizer) for sentence in prepared]
    members = {name: labels[name] for name in load}
    report = diversity(model, members, sentences, decode.batch_sentences)
    del model
    torch.cuda.empty_cache()  # the GPU's memory is for the jobs that decode
    return report


@torch.inference_mode()
def diversity(
    model: ScoringModel,
    members: Mapping[str, str],
    sentences: Sequence[Sentence],
    batch_sentences: int,
) -> dict[str, Any]:
    """Pairwise differences of the members' next-token distributions along the targets.

    members: name -> label for messages, in the order of the model. For each pair, and as the mean
    over pairs: `disagreement_percent`, the share of tokens at which
    the most probable token differs, and `kl_nats`, the Kullback-Leibler divergence per token,
    averaged over both directions. Sentences without a target or too long for the models are left
    out; if none remains, both are None. Raises PipelineError naming two members whose log-probs
    agree to 1e-4 nats, or a member with NaN log-probs.
    """
    n_member = model.n_member
    differ, divergence, largest = (
        torch.zeros(n_member, n_member, dtype=torch.float64) for _ in range(3)
    )
    n_token = n_sentence = 0
    scorable = [sentence for sentence in sentences if _can_score(sentence, model)]
    for batch in batches(scorable, batch_sentences):
        sources = [sentence.source for sentence in batch]
        targets = [sentence.target or [] for sentence in batch]
        for logits in teacher_forced(model, sources, targets):
            _refuse_nan(logits, [*members.values()])
            logprob = logits.log_softmax(dim=2, dtype=torch.float32).clamp(min=_LOWEST_NATS)
            best = logprob.argmax(dim=2)
            differ += (best[:, :, None] != best[:, None, :]).sum(dim=0).cpu()
            divergence += _divergence(logprob).cpu()
            largest = torch.maximum(largest, _largest_difference(logprob).cpu())
            n_token += len(logprob)
            n_sentence += 1
    pairs = []
    names, labels = [*members], [*members.values()]
    for first, second in combinations(range(n_member) if n_token else (), 2):
        if largest[first, second] <= _SAME_NATS:
            raise PipelineError(
                f"ensemble: members {labels[first]} and {labels[second]} are the same model: "
                f"their log-probs "
                f"agree to {_SAME_NATS} nats at {n_token} tokens. "
                f"Check the seeds or the dropout rate of the ensemble, or give different models."
            )
        both_directions = float(divergence[first, second] + divergence[second, first]) / 2
        pairs.append(
            {
                "members": [names[first], names[second]],
                "disagreement_percent": 100 * float(differ[first, second]) / n_token,
                "kl_nats": both_directions / n_token,
            }
        )
    means = {name: _mean(pairs, name) for name in ("disagreement_percent", "kl_nats")}
    return {"sentences": n_sentence, "tokens": n_token, "pairs": pairs, **means}


def _refuse_nan(logits: Tensor, labels: Sequence[str]) -> None:
    """Raise PipelineError if logits [token, member, vocab] of a member are NaN."""
    is_nan = logits.isnan().any(dim=2).any(dim=0).tolist()
    wrong = [label for label, nan in zip(labels, is_nan, strict=True) if nan]
    if wrong:
        raise PipelineError(
            f"ensemble: NaN log-probs on the dev set from member {', '.join(wrong)}. "
            "Check its weights."
        )


def _mean(pairs: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return sum(pair[name] for pair in pairs) / len(pairs) if pairs else None


def _can_score(sentence: Sentence, model: ScoringModel) -> bool:
    return (
        sentence.target is not None
        and not sentence.is_empty
        and len(sentence.source) <= model.max_source_tokens
        and len(sentence.target) <= target_limit(sentence.source, model)
    )


def _divergence(logprob: Tensor) -> Tensor:
    """KL(P_m || P_n), summed over tokens: [member, member], nats.

    logprob [token, member, vocab].
    """
    cross = torch.einsum("tmk,tnk->mn", logprob.exp(), logprob).double()
    return cross.diagonal()[:, None] - cross


def _largest_difference(logprob: Tensor) -> Tensor:
    """The largest difference of two members' log-probs: [member, member], nats."""
    n_member = logprob.shape[1]
    largest = torch.zeros(n_member, n_member, dtype=torch.float64, device=logprob.device)
    for first, second in combinations(range(n_member), 2):
        largest[first, second] = (logprob[:, first] - logprob[:, second]).abs().max()
    return largest

"""How much the members of an ensemble differ, on references that they are made to score."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.inputs import Inputs
from pipeline.decoding.model import ScoringModel
from pipeline.decoding.test_set import Dictionary, Sentence, batches, padded, read_test_set
from pipeline.ensembles import Ensemble
from pipeline.errors import DataError, PipelineError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.files import digest, file_sha256, read_json
from pipeline.run.settings import DecodeConfig

# Two members whose log-probabilities never differ by more are the same function, up to rounding.
_SAME_NATS = 1e-4
# A logarithm that is lower counts as this one, so that every divergence is a number.
_LOWEST_NATS = -1000.0
# Enough for two digits, in seconds.
_MOST_SENTENCES = 200


def diversity_on(
    test_set: Path,
    load: Mapping[str, Callable[[], FairseqMember]],
    dictionaries: tuple[Dictionary, Dictionary],
    decode: DecodeConfig,
) -> dict[str, Any]:
    """`diversity` on the first 200 sentences of a {role}.jsonl file.

    load: name of a member -> what loads it; one at a time where `decode.search_members` says that
    they do not fit in memory together.
    """
    loaders = list(load.values())
    model: ScoringModel
    if decode.search_members:
        model = MembersOneAtATime(loaders)
    else:
        model = as_ensemble([one() for one in loaders])
    first = read_test_set(test_set)[:_MOST_SENTENCES]
    sentences = [one.encoded(*dictionaries) for one in first]
    return diversity(model, list(load), sentences, decode.batch_sentences)


def diversity(
    model: ScoringModel, members: Sequence[str], sentences: Sequence[Sentence], batch_sentences: int
) -> dict[str, Any]:
    """Pairwise difference of the members' next-token distributions over all target tokens.

    Of each pair, and as the mean over pairs: `disagreement_percent`, the tokens at which the
    likeliest token differs, and `kl_nats`, the mean of both directions of the Kullback-Leibler
    divergence a token. Sentences without a target or too long for the models count for nothing;
    without any, both are None. Raises PipelineError naming two members whose log-probabilities are
    the same to 1e-4 nats.
    """
    n_member = model.n_member
    differ, divergence, largest = (
        torch.zeros(n_member, n_member, dtype=torch.float64) for _ in range(3)
    )
    n_token = n_sentence = 0
    for batch in batches([one for one in sentences if _fits(one, model)], batch_sentences):
        for logprob in _forced(model, batch):
            best = logprob.argmax(dim=2)
            differ += (best[:, :, None] != best[:, None, :]).sum(dim=0)
            divergence += _divergence(logprob)
            largest = torch.maximum(largest, _largest_difference(logprob))
            n_token += len(logprob)
            n_sentence += 1
    pairs = []
    for one, other in combinations(range(n_member) if n_token else (), 2):
        if largest[one, other] <= _SAME_NATS:
            raise PipelineError(
                f"members must differ, got the same log-probabilities to {_SAME_NATS} nats at "
                f"{n_token} tokens for {members[one]} and {members[other]}"
            )
        both_ways = float(divergence[one, other] + divergence[other, one]) / 2
        pairs.append(
            {
                "members": [members[one], members[other]],
                "disagreement_percent": 100 * float(differ[one, other]) / n_token,
                "kl_nats": both_ways / n_token,
            }
        )
    means = {name: _mean(pairs, name) for name in ("disagreement_percent", "kl_nats")}
    return {"sentences": n_sentence, "tokens": n_token, "pairs": pairs, **means}


def _mean(pairs: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return sum(pair[name] for pair in pairs) / len(pairs) if pairs else None


def _fits(sentence: Sentence, model: ScoringModel) -> bool:
    return (
        sentence.target is not None
        and not sentence.is_empty
        and len(sentence.source) <= model.max_source_tokens
        and len(sentence.target) <= model.max_target_tokens
    )


def _forced(model: ScoringModel, batch: Sequence[Sentence]) -> list[Tensor]:
    """ln P of every token of each target: [token, member, vocab], nats."""
    targets = [one.target or [] for one in batch]
    source = padded([one.source for one in batch], model.pad)
    prefix = padded([[model.eos, *target[:-1]] for target in targets], model.eos)
    with torch.inference_mode():
        return [
            logits.log_softmax(dim=2).cpu().clamp(min=_LOWEST_NATS)
            for logits in model.force(source, prefix, [len(target) for target in targets])
        ]


def _divergence(logprob: Tensor) -> Tensor:
    """KL(P_m || P_n), summed over tokens: [member, member], nats.

    logprob [token, member, vocab].
    """
    cross = torch.einsum("tmk,tnk->mn", logprob.exp(), logprob).double()
    return cross.diagonal()[:, None] - cross


def _largest_difference(logprob: Tensor) -> Tensor:
    """The largest difference of two members' log-probabilities: [member, member], nats."""
    n_member = logprob.shape[1]
    largest = torch.zeros(n_member, n_member, dtype=torch.float64)
    for one, other in combinations(range(n_member), 2):
        largest[one, other] = (logprob[:, one] - logprob[:, other]).abs().max()
    return largest


_log = logging.getLogger(__name__)


def diversity_report(inputs: Inputs, path: Path) -> dict[str, Any]:
    """What `path` shall hold; as it holds it already, where that was made from the same.

    Raises PipelineError where two members say the same.
    """
    several = [one for one in inputs.ensembles.values() if len(one.members) > 1]
    if not inputs.prepared.has("dev.jsonl"):
        folder = inputs.prepared.folder
        _log.info("%s: no dev.jsonl, so no report on how much members differ", folder)
        return {"made_from": None, "ensembles": {}}
    dev = inputs.prepared.file("dev.jsonl")
    made_from = digest(
        inputs.code,
        [[(one.name, one.model_sha256) for one in ensemble.members] for ensemble in several],
        [inputs.decode.device, inputs.decode.dtype],
        [file_sha256(one) for ensemble in several for one in inputs.dictionaries(ensemble)],
        file_sha256(dev),
    )
    if path.is_file():
        with suppress(DataError):  # of a damaged report: it is made again
            report: dict[str, Any] = read_json(path, "decode")
            if report.get("made_from") == made_from:
                return report
    found = {ensemble.name: _diversity_of(inputs, ensemble, dev) for ensemble in several}
    return {"made_from": made_from, "ensembles": found}


def _diversity_of(inputs: Inputs, ensemble: Ensemble, dev: Path) -> dict[str, Any]:
    import torch

    from pipeline.decoding.diversity import diversity_on

    torch.set_num_threads(1)
    source, target, loaders = inputs.loaders(ensemble)
    report = diversity_on(dev, loaders, (source, target), inputs.decode)
    if report["tokens"]:
        _log.info(
            "%s: on dev, members disagree on %.1f %% of %d tokens and diverge by %.3f nats a token",
            ensemble.name,
            report["disagreement_percent"],
            report["tokens"],
            report["kl_nats"],
        )
    return report

"""How fast this machine is at a task's own model: one step of training and one search, timed."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from pipeline.config import PipelineConfig, plain
from pipeline.fairseq_bridge.costs import ModelCosts
from pipeline.plan.hardware import Hardware

_MOST_FLOPS = 6e10  # of one timing: seconds on one core
_SEARCH_STEPS = 12
_MOST_MEMBERS = 4


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Mean lengths of a sentence, in tokens (source: frames of speech), and its bins, if any."""

    source: int
    target: int
    bins: int | None


def this_machine(
    config: PipelineConfig, costs: ModelCosts, lengths: Lengths, vocab_size: int
) -> Hardware:
    """One core: usable operations a second in training and in decoding, as measured now.

    Models have fresh weights. Batches are those of the settings, but smaller where one would take
    longer than seconds.
    """
    import torch

    torch.set_num_threads(1)
    train = _training_flops(config, costs, lengths, vocab_size)
    decode = _decoding_flops(config, costs, lengths, vocab_size)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Hardware(
        "this_machine", train, decode, memory, float("inf"), 0.0, "one core, measured now"
    )


def _models(config: PipelineConfig, vocab_size: int, count: int) -> tuple[Any, list[Any]]:
    from pipeline.fairseq_bridge.configuration import model_configuration
    from pipeline.fairseq_bridge.costs import stand_in_dictionary
    from pipeline.fairseq_bridge.models import build_model

    dictionary = stand_in_dictionary(vocab_size)
    settings = model_configuration(config.model.architecture, plain(config.model.settings))
    return dictionary, [build_model(settings, dictionary, dictionary) for _ in range(count)]


def _training_flops(
    config: PipelineConfig, costs: ModelCosts, lengths: Lengths, vocab_size: int
) -> float:
    import torch

    from pipeline.fairseq_bridge.costs import stand_in_source

    _, (model,) = _models(config, vocab_size, 1)
    sentence = lengths.source * costs.encoder_flops + lengths.target * costs.decoder_flops
    most = min(config.train.batch_tokens // lengths.source, int(_MOST_FLOPS / (3 * sentence)))
    n_sentence = max(1, most)
    source = stand_in_source(lengths.source, lengths.bins, n_sentence)
    target = stand_in_source(lengths.target, None, n_sentence)
    length = torch.full((n_sentence,), lengths.source)
    optimizer = torch.optim.Adam(model.parameters())

    def update() -> None:
        model.train()
        logits = model(source, length, target)[0].float()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return 3 * n_sentence * sentence / _seconds(update)


def _decoding_flops(
    config: PipelineConfig, costs: ModelCosts, lengths: Lengths, vocab_size: int
) -> float:
    from pipeline.config import DecodeConfig
    from pipeline.decoding.beam import beam_search
    from pipeline.decoding.ensemble import as_ensemble
    from pipeline.decoding.sentence import Sentence
    from pipeline.fairseq_bridge.costs import stand_in_source
    from pipeline.fairseq_bridge.models import as_member

    steps = min(_SEARCH_STEPS, lengths.target)
    rows = config.decode.beam
    sentence = lengths.source * costs.encoder_flops + rows * steps * costs.decoder_flops
    n_member = min(_MOST_MEMBERS, max(1, len(config.ensemble.seeds)))
    n_member = max(1, min(n_member, int(_MOST_FLOPS / sentence)))
    n_sentence = min(config.decode.batch_sentences, int(_MOST_FLOPS / (sentence * n_member)))
    source = stand_in_source(lengths.source, lengths.bins)[0]
    frames = source.numpy() if lengths.bins else source.tolist()
    batch = [Sentence(place, frames, None) for place in range(max(1, n_sentence))]
    _, models = _models(config, vocab_size, n_member)
    ensemble = as_ensemble([as_member(one, config.model.architecture) for one in models])
    settings: dict[str, Any] = plain(config.decode) | {
        "min_length": steps,  # fresh models would end at once, or never
        "max_length_ratio": 0.0,
        "max_length_offset": steps,
        "regime": "beam",
    }
    decode = DecodeConfig(**settings)
    seconds = _seconds(lambda: beam_search(ensemble, batch, "prex", decode))
    return len(batch) * n_member * sentence / seconds


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of a run after a first one: other processes do not count."""
    work()
    start = time.process_time()
    work()
    return time.process_time() - start

"""What runs the work: a table of accelerators, each with its source, in the units of a plan."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.plan.costs import ModelCosts
from pipeline.run.settings import PipelineConfig, plain

# Share of the peak that training has: of translation by Ott et al. 2018, table 1 (8 V100: 143,000
# target tokens a second in fp16, 54,000 in fp32: as recalled, not checked against the paper), of
# speech by the paper (8 days on 8 V100). tests/pipeline/plan/ works them out again. Other
# accelerators, and decoding, are assumed to have the same share.
USABLE_SHARE = {
    ("translation", "fp16"): 0.187,
    ("translation", "fp32"): 0.56,
    ("speech", "fp16"): 0.125,
    ("speech", "fp32"): 0.125,
}
SHARE_SOURCES = {
    "translation": "by tokens a second of Ott et al. 2018 on V100, as recalled and not checked",
    "speech": "by the paper's 8 days on 8 V100 a member",
}
# Host time of one step of a search, in which a GPU waits for its next kernels: an assumption.
GPU_STEP_SECONDS = 0.02


@dataclass(frozen=True)
class Hardware:
    """One device: usable operations a second in training and in decoding, memory, and the rest.

    bytes_a_second: of its memory; step_seconds: least time of one step of a search. usable_share:
    of its peak in training, and share_source: where that is from, unless it was timed.
    """

    name: str
    train_flops: float
    decode_flops: float
    memory_bytes: float
    bytes_a_second: float
    step_seconds: float
    source: str
    usable_share: float | None = None
    share_source: str = ""


@dataclass(frozen=True)
class _Accelerator:
    peak_flops: dict[str, float]
    memory_bytes: float
    bytes_a_second: float
    source: str


ACCELERATORS = {
    "v100": _Accelerator(
        {"fp16": 125e12, "fp32": 15.7e12}, 16e9, 900e9, "NVIDIA V100 SXM2, data sheet"
    ),
    "a100": _Accelerator(
        {"fp16": 312e12, "fp32": 19.5e12}, 80e9, 2039e9, "NVIDIA A100 80GB SXM, data sheet"
    ),
    "h100": _Accelerator(
        {"fp16": 989e12, "fp32": 67e12}, 80e9, 3350e9, "NVIDIA H100 SXM, data sheet, dense"
    ),
}


def accelerator(
    name: str, family: str, train_precision: str, decode_dtype: str, share: float | None = None
) -> Hardware:
    """An accelerator of the table, for a family of tasks and the precisions of both stages.

    share: of its peak that both stages have; None: as published for the family.
    """
    found = ACCELERATORS[name]
    train = "fp32" if train_precision == "fp32" else "fp16"
    decode = "fp32" if decode_dtype == "float32" else "fp16"
    shares = {one: share or USABLE_SHARE[family, one] for one in (train, decode)}
    return Hardware(
        name,
        found.peak_flops[train] * shares[train],
        found.peak_flops[decode] * shares[decode],
        found.memory_bytes,
        found.bytes_a_second,
        GPU_STEP_SECONDS,
        found.source,
        shares[train],
        "as set" if share else SHARE_SOURCES[family],
    )


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
    from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
    from pipeline.plan.costs import placeholder_dictionary

    dictionary = placeholder_dictionary(vocab_size)
    settings = model_configuration(config.model.architecture, plain(config.model.settings))
    return dictionary, [build_model(settings, dictionary, dictionary) for _ in range(count)]


def _training_flops(
    config: PipelineConfig, costs: ModelCosts, lengths: Lengths, vocab_size: int
) -> float:
    import torch

    from pipeline.plan.costs import placeholder_source

    _, (model,) = _models(config, vocab_size, 1)
    sentence = lengths.source * costs.encoder_flops + lengths.target * costs.decoder_flops
    most = min(config.train.batch_tokens // lengths.source, int(_MOST_FLOPS / (3 * sentence)))
    n_sentence = max(1, most)
    source = placeholder_source(lengths.source, lengths.bins, n_sentence)
    target = placeholder_source(lengths.target, None, n_sentence)
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
    from pipeline.decoding.beam import beam_search
    from pipeline.decoding.ensemble import as_ensemble
    from pipeline.decoding.test_set import Sentence
    from pipeline.fairseq_bridge.members.member import as_member
    from pipeline.plan.costs import placeholder_source
    from pipeline.run.settings import DecodeConfig

    steps = min(_SEARCH_STEPS, lengths.target)
    rows = config.decode.beam
    sentence = lengths.source * costs.encoder_flops + rows * steps * costs.decoder_flops
    n_member = min(_MOST_MEMBERS, max(1, len(config.ensemble.seeds)))
    n_member = max(1, min(n_member, int(_MOST_FLOPS / sentence)))
    n_sentence = min(config.decode.batch_sentences, int(_MOST_FLOPS / (sentence * n_member)))
    source = placeholder_source(lengths.source, lengths.bins)[0]
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

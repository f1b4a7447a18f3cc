"""Hardware that a plan can assume: a table of accelerators, and this machine as timed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from pipeline.plan.costs import ModelCosts
from pipeline.run.settings import PipelineConfig, plain

# Share of the peak FLOP/s that training reaches. Translation: fairseq's Transformer (big) as NVIDIA
# publishes it, 186,442 tokens per second in mixed precision and 53,641 in fp32 on 8 V100 (DGX-1,
# batches of 2560 tokens; github.com/NVIDIA/DeepLearningExamples, commit 0053b4b,
# PyTorch/Translation/Transformer/README.md, "Training performance"). Speech: our paper (8 days on
# 8 V100). tests/pipeline/plan derives them. Other accelerators and decoding are assumed to reach
# the same share.
USABLE_SHARE = {
    ("translation", "fp16"): 0.243,
    ("translation", "fp32"): 0.557,
    ("speech", "fp16"): 0.125,
    ("speech", "fp32"): 0.125,
}
SHARE_SOURCES = {
    "translation": "from the tokens per second that NVIDIA publishes for fairseq on 8 V100",
    "speech": "from the paper's 8 days on 8 V100 per member",
}
# Time of one search step during which a GPU waits for the host; an assumption.
GPU_STEP_SECONDS = 0.02


@dataclass(frozen=True)
class Hardware:
    """One device.

    train_flops, decode_flops: usable FLOP/s in training and decoding. bytes_per_second: of its
    memory. step_seconds: minimum time of one search step. usable_share, share_source: the share of
    its peak FLOP/s that training reaches and the source of this value, unless the device was timed.
    host_bytes_per_second: of its link to the host, one way; infinite for a CPU.
    """

    name: str
    train_flops: float
    decode_flops: float
    memory_bytes: float
    bytes_per_second: float
    step_seconds: float
    source: str
    usable_share: float | None = None
    share_source: str = ""
    host_bytes_per_second: float = inf


@dataclass(frozen=True)
class _Accelerator:
    peak_flops: dict[str, float]
    memory_bytes: float
    bytes_per_second: float
    host_bytes_per_second: float  # half of what data sheets give for PCIe, which is both ways
    source: str


ACCELERATORS = {
    "v100": _Accelerator(
        {"fp16": 125e12, "fp32": 15.7e12}, 16e9, 900e9, 16e9, "NVIDIA V100 SXM2, data sheet"
    ),
    "a100": _Accelerator(
        {"fp16": 312e12, "fp32": 19.5e12}, 80e9, 2039e9, 32e9, "NVIDIA A100 80GB SXM, data sheet"
    ),
    "h100": _Accelerator(
        {"fp16": 989e12, "fp32": 67e12}, 80e9, 3350e9, 64e9, "NVIDIA H100 SXM, data sheet, dense"
    ),
}


def accelerator(
    name: str, family: str, train_precision: str, decode_dtype: str, share: float | None = None
) -> Hardware:
    """An accelerator of the table, for a family of tasks and the precisions of both stages.

    `share` is the share of its peak FLOP/s that both stages reach; None: as published.
    """
    device = ACCELERATORS[name]
    train = "fp32" if train_precision == "fp32" else "fp16"
    decode = "fp32" if decode_dtype == "float32" else "fp16"
    shares = {precision: share or USABLE_SHARE[family, precision] for precision in (train, decode)}
    return Hardware(
        name,
        device.peak_flops[train] * shares[train],
        device.peak_flops[decode] * shares[decode],
        device.memory_bytes,
        device.bytes_per_second,
        GPU_STEP_SECONDS,
        device.source,
        shares[train],
        "as set" if share else SHARE_SOURCES[family],
        device.host_bytes_per_second,
    )


_MAX_FLOPS = 6e10  # of one timing: seconds on one core
_SEARCH_STEPS = 12
_MAX_MEMBERS = 4


@dataclass(frozen=True)
class Lengths:
    """Mean lengths of a sentence in tokens (source of speech: in frames), and bins of speech."""

    source: int
    target: int
    bins: int | None


def this_machine(
    config: PipelineConfig, costs: ModelCosts, lengths: Lengths, vocab_size: int
) -> Hardware:
    """One core of this machine, timed in training and decoding with models of fresh weights.

    Batches have the size that the settings give, unless a batch would take more than a few seconds.
    """
    import torch

    torch.set_num_threads(1)
    train = _training_flops(config, costs, lengths, vocab_size)
    decode = _decoding_flops(config, costs, lengths, vocab_size)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Hardware("this_machine", train, decode, memory, inf, 0.0, "one core, measured now")


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
    n_fitting = min(config.train.batch_tokens // lengths.source, int(_MAX_FLOPS / (3 * sentence)))
    n_sentence = max(1, n_fitting)
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
    n_member = min(_MAX_MEMBERS, max(1, len(config.ensemble.seeds)))
    n_member = max(1, min(n_member, int(_MAX_FLOPS / sentence)))
    n_sentence = min(config.decode.batch_sentences, int(_MAX_FLOPS / (sentence * n_member)))
    source = placeholder_source(lengths.source, lengths.bins)[0]
    frames = source.numpy() if lengths.bins else source.tolist()
    batch = [Sentence(index, frames, None) for index in range(max(1, n_sentence))]
    _, models = _models(config, vocab_size, n_member)
    ensemble = as_ensemble([as_member(model, config.model.architecture) for model in models])
    settings: dict[str, Any] = plain(config.decode) | {
        "min_length": steps,  # models of fresh weights would finish at once, or never
        "max_length_ratio": 0.0,
        "max_length_offset": steps,
        "regime": "beam",
    }
    decode = DecodeConfig(**settings)
    seconds = _seconds(lambda: beam_search(ensemble, batch, "prex", decode))
    return len(batch) * n_member * sentence / seconds


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of a second run of `work`; other processes do not count."""
    work()
    start = time.process_time()
    work()
    return time.process_time() - start

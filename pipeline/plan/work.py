"""Estimated time, disk space and memory of each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod

from pipeline.data.paper_corpora import SPEECH_FRAMES_PER_WORD, assumed_training
from pipeline.decoding.plan import Part, part_size, plan_parts, sent_bytes, shards
from pipeline.ensembles import planned_ensembles
from pipeline.plan.costs import ModelCosts
from pipeline.plan.hardware import Hardware
from pipeline.plan.sizes import SetSize
from pipeline.run.settings import DecodeConfig, PipelineConfig, iterate_values
from pipeline.store import SUBSET
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES

# Stages that run on CPUs only, measured with the demo on one core of an AMD EPYC.
_HELP_SENTENCES = 73_123  # LibreOffice's help in German, English and French
_PREPARED_SENTENCES_PER_SECOND = 2600  # the help in 28 s
_MEASURED_VALUES_PER_SECOND = 7e6  # tokens x members x settings: docs/bench_uncertainty.md
_RESAMPLED_SENTENCES_PER_SECOND = 320_000  # 78 decodes of 500 sentences, 1000 resamples, in 121 s
PART_START_SECONDS = 2.0  # imports and loading of models, per job
_TABLES_SECONDS_PER_TASK = 30
_RESUME_STATES = 2  # kept by training
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "float32": 4, "float16": 2}
_UPDATE_PER_FORWARD = 3  # FLOPs of an update, with its backward pass, per FLOP of the forward pass
_TEXT_BYTES_PER_WORD = 16  # as text and as token ids
# Bytes of an accelerator's memory that posterior, top of the beam and statistics read and write per
# logit; counted in docs/decisions/0010-decoding-on-an-accelerator.md.
_BYTES_PER_LOGIT = 200


@dataclass(frozen=True)
class Work:
    """The work of one stage.

    part_seconds: of each part on one device. processes: devices that a part uses. part_shards: the
    number of shards of each part; a further job joins them. disk_bytes: of the whole stage.
    memory_bytes: of a part on each of its devices, without activations. on_device: whether it runs
    on the devices of the models, or on any CPU.
    """

    stage: str
    part_seconds: tuple[float, ...]
    disk_bytes: float
    memory_bytes: float
    processes: int = 1
    flops: float = 0.0
    on_device: bool = False
    part_shards: tuple[int, ...] = ()

    def shard_seconds(self) -> list[float]:
        """Seconds of each job that makes a shard; these jobs run before all others."""
        parts = zip(self.part_seconds, self.part_shards, strict=bool(self.part_shards))
        return [
            (seconds - PART_START_SECONDS) / n_shard
            for seconds, n_shard in parts
            for _ in range(n_shard)
        ]

    def whole_seconds(self) -> list[float]:
        """Seconds of each part after its shards; a part with shards only joins them."""
        part_shards = self.part_shards or (0,) * len(self.part_seconds)
        parts = zip(self.part_seconds, part_shards, strict=True)
        return [PART_START_SECONDS if n_shard else seconds for seconds, n_shard in parts]

    def wall_seconds(self, devices: int) -> float:
        """Expected wall-clock time on this number of devices, with parts side by side."""
        devices_per_part = min(self.processes, devices)
        parallel_parts = max(1, devices // self.processes)
        wall = 0.0
        for job_seconds in (self.shard_seconds(), self.whole_seconds()):
            seconds = [device_seconds / devices_per_part for device_seconds in job_seconds]
            wall += max(max(seconds, default=0.0), sum(seconds) / parallel_parts)
        return wall


@dataclass(frozen=True)
class _Scoring:
    """The properties of an ensemble that `part_size` needs."""

    n_member: int
    vocab_size: int


def all_work(
    config: PipelineConfig,
    costs: ModelCosts,
    vocab_size: int,
    sizes: Mapping[str, SetSize],
    target_share: float,
    hardware: Hardware,
) -> list[Work]:
    """The work of all stages, in order.

    `target_share` is the number of target tokens per source token of a training batch.
    """
    parts = {part.name: part for part in _decode_parts(config, sizes)}
    evaluated = [part for part in parts.values() if part.ensemble != SUBSET]
    measured = [part for part in evaluated if part.members != (part.ensemble,)]
    tokens = {part.name: _tokens(config, part, sizes[part.test_set]) for part in measured}
    n_sentence = sum(sizes[part.test_set].sentences for part in evaluated)
    n_token = sum(tokens.values())
    n_value = sum(len(part.members) * tokens[part.name] for part in measured)
    n_value *= _uncertainty_settings(config)
    return [
        _prepare(config),
        _train(config, costs, target_share, hardware),
        _decode(config, costs, vocab_size, list(parts.values()), sizes, hardware),
        Work(
            "uncertainty",
            (n_value / _MEASURED_VALUES_PER_SECOND,),
            8 * len(TOKEN_MEASURES) * n_token,
            2**30,
        ),
        Work(
            "metrics",
            (n_sentence * config.metrics.resamples / _RESAMPLED_SENTENCES_PER_SECOND,),
            0,
            2**30,
        ),
        Work("tables", (_TABLES_SECONDS_PER_TASK,), 0, 2**30),
    ]


def training_flops(config: PipelineConfig, costs: ModelCosts, target_share: float) -> float:
    """FLOPs of the training of one member."""
    train = config.train
    batch = train.batch_tokens * train.accumulate_batches * train.processes
    forward = costs.encoder_flops + target_share * costs.decoder_flops
    return _UPDATE_PER_FORWARD * train.updates * batch * forward


def _decode_parts(config: PipelineConfig, sizes: Mapping[str, SetSize]) -> list[Part]:
    planned = planned_ensembles(config.ensemble, config.train)
    sets = {name: settings for name, settings in config.task.test_sets.items() if name in sizes}
    return plan_parts(planned.main, planned.further, config.decode, sets)


def _uncertainty_settings(config: PipelineConfig) -> int:
    """Number of combinations of settings at which measures are computed."""
    grid = (config.uncertainty.beam, config.uncertainty.temperature, config.uncertainty.length_norm)
    return prod(len(list(iterate_values(values))) for values in grid)


def _prepare(config: PipelineConfig) -> Work:
    paper, data = assumed_training(config.task), config.data
    n_word = sum(paper.words.values())
    if config.task.family == "speech":
        n_sentence = paper.sentences if data.speech.train else data.speech.commands
        bytes_per_word = SPEECH_FRAMES_PER_WORD * data.speech.feature_bins * _BYTES["float32"]
    else:
        is_help = data.source == "libreoffice"
        n_sentence = data.train_sentences or (_HELP_SENTENCES if is_help else paper.sentences)
        if data.units.name != "learnt":  # no training data
            n_sentence = data.test_sentences
        else:
            copies = data.copies
            n_sentence += round(n_sentence * (copies.source + copies.target + copies.third))
        bytes_per_word = _TEXT_BYTES_PER_WORD
    seconds = n_sentence / _PREPARED_SENTENCES_PER_SECOND
    return Work("prepare", (seconds,), n_sentence * n_word * bytes_per_word, 2**30)


def _train(
    config: PipelineConfig, costs: ModelCosts, target_share: float, hardware: Hardware
) -> Work:
    train, n_member = config.train, len(config.ensemble.seeds)
    flops = training_flops(config, costs, target_share)
    weights = costs.parameters * _BYTES[train.precision]
    masters = 0 if train.precision == "fp32" else 4 * costs.parameters
    moments = 8 * costs.parameters
    kept = train.keep_checkpoints + 1  # with their average
    state = weights + masters + moments
    return Work(
        "train",
        (PART_START_SECONDS + flops / hardware.train_flops,) * n_member,
        n_member * (2 * kept * weights + _RESUME_STATES * state),
        state + weights,  # the latter for gradients
        train.processes,
        flops * n_member,
        on_device=True,
    )


def _decode(
    config: PipelineConfig,
    costs: ModelCosts,
    vocab_size: int,
    parts: list[Part],
    sizes: Mapping[str, SetSize],
    hardware: Hardware,
) -> Work:
    decode, seconds, part_shards, flops, disk, memory = config.decode, [], [], 0.0, 0.0, 0.0
    for part in parts:
        size, n_member = sizes[part.test_set], len(part.members)
        part_flops = n_member * size.sentences * size.source_length * costs.encoder_flops
        part_flops += n_member * _tokens(config, part, size) * costs.decoder_flops
        weights = n_member * costs.parameters * _BYTES[decode.dtype]
        n_batch = ceil(size.sentences / decode.batch_sentences)
        steps = 1 if part.regime == "teacher_forcing" else size.target_length
        step = max(hardware.step_seconds, weights / hardware.bytes_per_second)
        busy = max(part_flops / hardware.decode_flops, n_batch * steps * step)
        busy += _tokens(config, part, size) * _token_seconds(n_member, vocab_size, part, hardware)
        n_block = ceil(size.sentences / decode.part_sentences)
        part_shards.append(len(shards(decode.shards, n_block)))
        n_job = part_shards[-1] + 1  # one joins the shards, or makes the whole part
        seconds.append(n_job * PART_START_SECONDS + busy)
        expected = part_size(
            [ceil(size.target_length)] * size.sentences,
            _Scoring(n_member, vocab_size),
            part.regime,
            part.combination,
            decode,
            config.dump,
        )
        flops += part_flops
        disk += expected.disk_bytes / 2  # the blocks that double it exist only during a job
        loaded = weights * _loaded_members(decode, part) / n_member
        working = decode.device_memory_mib * 2**20 if decode.device == "cuda" else 0
        memory = max(memory, loaded + expected.memory_bytes + working)
    return Work(
        "decode",
        tuple(seconds),
        disk,
        memory,
        flops=flops,
        on_device=True,
        part_shards=tuple(part_shards),
    )


def _token_seconds(n_member: int, vocab_size: int, part: Part, hardware: Hardware) -> float:
    """Seconds that an accelerator takes for the distributions of a prefix, and for sending them.

    On a CPU both are part of what is timed.
    """
    in_memory = _BYTES_PER_LOGIT * n_member * vocab_size / hardware.bytes_per_second
    return in_memory + sent_bytes(n_member, part.regime) / hardware.host_bytes_per_second


def _loaded_members(decode: DecodeConfig, part: Part) -> int:
    """Number of members in memory at the same time; if not all fit, scoring loads one at a time."""
    if not (decode.search_members or decode.hypotheses):
        return len(part.members)
    only_scores = part.takes_hypotheses or part.regime == "teacher_forcing"
    return 1 if only_scores else len(part.search_members)


def _tokens(config: PipelineConfig, part: Part, size: SetSize) -> float:
    """Target tokens of all hypotheses of a part."""
    rows = 1 if part.regime == "teacher_forcing" else config.decode.beam
    return rows * size.sentences * size.target_length

"""The work of each stage: what its parts take on a device, on disk and in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from pipeline.data.paper_corpora import SPEECH_FRAMES_PER_WORD, TRAINING
from pipeline.decoding.plan import Part, part_size, plan_parts, shards
from pipeline.ensembles import planned_ensembles
from pipeline.plan.costs import ModelCosts
from pipeline.plan.hardware import Hardware
from pipeline.plan.sizes import SetSize
from pipeline.run.settings import DecodeConfig, PipelineConfig, iterate_values
from pipeline.store import SUBSET
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES

# Measured with the demo on one core of an AMD EPYC: stages that only a processor runs.
_HELP_SENTENCES = 73_123  # LibreOffice's help, in German, English and French
_PREPARED_SENTENCES_A_SECOND = 2600  # those in 28 s
_MEASURED_VALUES_A_SECOND = 7e6  # token, member and setting: docs/bench_uncertainty.md
_RESAMPLED_SENTENCES_A_SECOND = 320_000  # 78 decodes of 500 sentences, 1000 resamples, in 121 s
PART_START_SECONDS = 2.0  # of a job: imports, and loading of models
_TABLES_SECONDS_A_TASK = 30
_RESUME_STATES = 2  # that training keeps
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "float32": 4, "float16": 2}
_BACKWARD = 3  # operations of an update for each of its forward pass
_TEXT_BYTES_A_WORD = 16  # as text, and as token ids


@dataclass(frozen=True)
class Work:
    """The parts of a stage: seconds of each on one device; processes: devices that one takes.

    part_shards: jobs that share each part, where there are such; another job joins their blocks.
    disk_bytes: of the whole stage; memory_bytes: of a part, on each of its devices, beside the
    activations; on_device: whether it runs where models run, or on a core of any machine.
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
        """Seconds of each job that makes a share of a part: jobs that go before all others."""
        shared = zip(self.part_seconds, self.part_shards, strict=bool(self.part_shards))
        return [(seconds - PART_START_SECONDS) / n for seconds, n in shared for _ in range(n)]

    def whole_seconds(self) -> list[float]:
        """Seconds that each part takes after its shares, if any: then it is only joined."""
        shards = self.part_shards or (0,) * len(self.part_seconds)
        parts = zip(self.part_seconds, shards, strict=True)
        return [PART_START_SECONDS if n else seconds for seconds, n in parts]

    def wall_seconds(self, devices: int) -> float:
        """Expected time with so many devices, parts side by side."""
        together = min(self.processes, devices)
        at_once = max(1, devices // self.processes)
        wall = 0.0
        for array in (self.shard_seconds(), self.whole_seconds()):
            shares = [seconds / together for seconds in array]
            wall += max(max(shares, default=0.0), sum(shares) / at_once)
        return wall


@dataclass(frozen=True)
class _Scoring:
    """What `part_size` asks of an ensemble."""

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
    """The stages in their order; target_share: target tokens for each source token of a batch."""
    planned = {job.name: job for job in _planned_jobs(config, sizes)}
    decodes = [one for one in planned.values() if one.ensemble != SUBSET]
    measured = [one for one in decodes if one.members != (one.ensemble,)]
    tokens = {one.name: _tokens(config, one, sizes[one.test_set]) for one in planned.values()}
    n_sentence = sum(sizes[one.test_set].sentences for one in decodes)
    n_token = sum(tokens[one.name] for one in measured)
    values = sum(len(one.members) * tokens[one.name] for one in measured) * _settings(config)
    return [
        _prepare(config),
        _train(config, costs, target_share, hardware),
        _decode(config, costs, vocab_size, list(planned.values()), sizes, hardware),
        Work(
            "uncertainty",
            (values / _MEASURED_VALUES_A_SECOND,),
            8 * len(TOKEN_MEASURES) * n_token,
            2**30,
        ),
        Work(
            "metrics",
            (n_sentence * config.metrics.resamples / _RESAMPLED_SENTENCES_A_SECOND,),
            0,
            2**30,
        ),
        Work("tables", (_TABLES_SECONDS_A_TASK,), 0, 2**30),
    ]


def training_flops(config: PipelineConfig, costs: ModelCosts, target_share: float) -> float:
    """Operations of the training of one member."""
    train = config.train
    batch = train.batch_tokens * train.accumulate_batches * train.processes
    forward = costs.encoder_flops + target_share * costs.decoder_flops
    return _BACKWARD * train.updates * batch * forward


def _planned_jobs(config: PipelineConfig, sizes: Mapping[str, SetSize]) -> list[Part]:
    planned = planned_ensembles(config.ensemble, config.train)
    sets = {role: one for role, one in config.task.test_sets.items() if role in sizes}
    return plan_parts(planned.main, planned.further, config.decode, sets)


def _settings(config: PipelineConfig) -> int:
    one = config.uncertainty
    values = (one.beam, one.temperature, one.length_norm)
    beams, temperatures, norms = (len(list(iterate_values(value))) for value in values)
    return beams * temperatures * norms


def _prepare(config: PipelineConfig) -> Work:
    paper, data = TRAINING[config.task.name], config.data
    n_word = sum(paper.words.values())
    if config.task.family == "speech":
        n_sentence = paper.sentences if data.speech.train else data.speech.commands
        bytes_a_word = SPEECH_FRAMES_PER_WORD * data.speech.feature_bins * _BYTES["float32"]
    else:
        own_text = data.source != "libreoffice"
        n_sentence = data.train_sentences or (paper.sentences if own_text else _HELP_SENTENCES)
        if data.units.name == "imported":  # nothing is trained
            n_sentence = data.test_sentences
        bytes_a_word = _TEXT_BYTES_A_WORD
    seconds = n_sentence / _PREPARED_SENTENCES_A_SECOND
    return Work("prepare", (seconds,), n_sentence * n_word * bytes_a_word, 2**30)


def _train(
    config: PipelineConfig, costs: ModelCosts, target_share: float, hardware: Hardware
) -> Work:
    train, n_member = config.train, len(config.ensemble.seeds)
    flops = training_flops(config, costs, target_share)
    weights = costs.parameters * _BYTES[train.precision]
    masters = 0 if train.precision == "fp32" else 4 * costs.parameters
    moments = 8 * costs.parameters
    kept = train.keep_checkpoints + 1  # and their average
    state = weights + masters + moments
    return Work(
        "train",
        (PART_START_SECONDS + flops / hardware.train_flops,) * n_member,
        n_member * (2 * kept * weights + _RESUME_STATES * state),
        state + weights,  # gradients
        train.processes,
        flops * n_member,
        on_device=True,
    )


def _decode(
    config: PipelineConfig,
    costs: ModelCosts,
    vocab_size: int,
    planned: list[Part],
    sizes: Mapping[str, SetSize],
    hardware: Hardware,
) -> Work:
    decode, seconds, shared, flops, disk, memory = config.decode, [], [], 0.0, 0.0, 0.0
    for job in planned:
        size, n_member = sizes[job.test_set], len(job.members)
        work = n_member * size.sentences * size.source_length * costs.encoder_flops
        work += n_member * _tokens(config, job, size) * costs.decoder_flops
        weights = n_member * costs.parameters * _BYTES[decode.dtype]
        n_batch = ceil(size.sentences / decode.batch_sentences)
        steps = 1 if job.regime == "teacher_forcing" else size.target_length
        step = max(hardware.step_seconds, weights / hardware.bytes_a_second)
        busy = max(work / hardware.decode_flops, n_batch * steps * step)
        n_block = ceil(size.sentences / decode.part_sentences)
        shared.append(len(shards(decode.shards, n_block)))
        n_job = shared[-1] + 1  # that which joins, or makes the whole part
        seconds.append(n_job * PART_START_SECONDS + busy)
        expected = part_size(
            [ceil(size.target_length)] * size.sentences,
            _Scoring(n_member, vocab_size),
            job.regime,
            job.combination,
            decode,
            config.dump,
        )
        flops += work
        disk += expected.disk_bytes / 2  # twice, but for the while of a job
        loaded = weights * _members_at_once(decode, job) / n_member
        memory = max(memory, loaded + expected.memory_bytes)
    return Work(
        "decode", tuple(seconds), disk, memory, 1, flops, on_device=True, part_shards=tuple(shared)
    )


def _members_at_once(decode: DecodeConfig, job: Part) -> int:
    """Members in memory together: those that search, where not all fit; then one by one."""
    if not (decode.search_members or decode.hypotheses):
        return len(job.members)
    is_scored_alone = job.takes_hypotheses or job.regime == "teacher_forcing"
    return 1 if is_scored_alone else len(job.search_members)


def _tokens(config: PipelineConfig, job: Part, size: SetSize) -> float:
    """Target tokens of all hypotheses of a job."""
    rows = 1 if job.regime == "teacher_forcing" else config.decode.beam
    return rows * size.sentences * size.target_length

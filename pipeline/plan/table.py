"""A plan as text: a table, its assumptions, how to submit it, and whether it fits."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from pipeline.data.paper_corpora import assumed_training, paper_training
from pipeline.plan.costs import ModelCosts
from pipeline.plan.hardware import Hardware
from pipeline.plan.sizes import SUBWORDS_PER_WORD
from pipeline.plan.work import Work
from pipeline.run.settings import PipelineConfig

_HEADER = ("stage", "parts", "FLOPs", "device hours", "wall clock", "disk GB", "memory GB")
_WIDTHS = (12, 6, 11, 13, 11, 9, 10)
_SLACK = 1.5  # time and memory requested from Slurm, per expected value
_MIN_JOB_GB = 8


def plan_text(
    config: PipelineConfig,
    costs: ModelCosts,
    work: Sequence[Work],
    hardware: Hardware,
    devices: int,
    *,
    overrides: Sequence[str],
    from_prepared: bool,
) -> str:
    """The whole plan; `overrides` are the command line's, for the commands that it prints."""
    lines = [
        f"{config.experiment.name}, {config.task.name}: {costs.parameters:,} parameters per "
        f"member; {devices} x {hardware.name} ({hardware.source})",
        "",
        _row(_HEADER),
        *(_row(_cells(stage, devices)) for stage in work),
        _row(_total(work, devices)),
        "",
        *_assumptions(config, hardware, from_prepared=from_prepared),
        "",
        *_submission(config, work, hardware, overrides),
        "",
        *_fits(config, work, hardware, devices),
    ]
    return "\n".join(lines)


def _cells(work: Work, devices: int) -> tuple[str, ...]:
    device_seconds = sum(work.part_seconds)
    return (
        work.stage,
        str(len(work.part_seconds)),
        f"{work.flops:.2g}" if work.flops else "-",
        _number(device_seconds / 3600),
        _clock(work.wall_seconds(devices)),
        _number(work.disk_bytes / 1e9),
        _number(work.memory_bytes / 1e9),
    )


def _total(work: Sequence[Work], devices: int) -> tuple[str, ...]:
    hours = sum(sum(stage.part_seconds) for stage in work) / 3600
    wall = sum(stage.wall_seconds(devices) for stage in work)
    disk = sum(stage.disk_bytes for stage in work) / 1e9
    memory = max(stage.memory_bytes for stage in work) / 1e9
    flops = sum(stage.flops for stage in work)
    return ("all", "", f"{flops:.2g}", _number(hours), _clock(wall), _number(disk), _number(memory))


def _assumptions(
    config: PipelineConfig, hardware: Hardware, *, from_prepared: bool
) -> Iterator[str]:
    yield (
        f"FLOPs are counted on the model. A device is assumed to reach {hardware.train_flops:.3g} "
        f"FLOP/s in training and {hardware.decode_flops:.3g} in decoding."
    )
    if hardware.usable_share is not None:
        yield (
            f"In training this is {hardware.usable_share:.3g} of its peak, "
            f"{hardware.share_source}; set plan.usable_share to your own value. Decoding is "
            f"assumed to reach the same share, and posteriors and statistics to take the time of "
            f"their traffic in its memory."
        )
    if from_prepared:
        yield "Test sets: as prepared."
    else:
        yield (
            f"Test sets: from the paper's tables and data.*, assuming {SUBWORDS_PER_WORD} subwords "
            f"per word; run stages.prepare first for their real sizes."
        )
    if paper_training(config.task) is None:
        yield (
            f"The paper has no task {config.task.name}: where data.* does not give the size of the "
            f"training data, prepare is planned for that of {assumed_training(config.task).name}."
        )
    yield (
        "Memory is per device of one part, without activations. Disk space is before compression. "
        "Stages prepare, uncertainty, metrics and tables run on a CPU, at speeds measured with the "
        "demo."
    )


def _submission(
    config: PipelineConfig, work: Sequence[Work], hardware: Hardware, overrides: Sequence[str]
) -> Iterator[str]:
    yield "On Slurm (docs/cluster.md):"
    given = shlex.join(overrides)
    is_gpu = hardware.name != "this_machine"
    for stage in work:
        if not stage.on_device or not stage.part_seconds:
            continue
        arrays = _arrays(config, stage)
        longest = max((max(jobs, default=0.0) for jobs in arrays), default=0.0) / stage.processes
        minutes = max(10, ceil(_SLACK * longest / 60))
        memory = stage.memory_bytes * (1 if is_gpu else stage.processes)
        settings = [
            f"hydra.launcher.timeout_min={minutes}",
            f"hydra.launcher.mem_gb={max(_MIN_JOB_GB, ceil(_SLACK * memory / 1e9))}",
        ]
        if is_gpu:
            settings.append(f"hydra.launcher.gpus_per_node={stage.processes}")
        sizes = ", then of ".join(str(len(jobs)) for jobs in arrays)
        yield (
            f"  python -m stages.{stage.stage} {given}{' ' if given else ''}hydra/launcher=slurm "
            f"{' '.join(settings)}  # array of {sizes}"
        )


def _arrays(config: PipelineConfig, work: Work) -> list[list[float]]:
    """Device seconds of each job, in the arrays that a stage submits one after the other."""
    parts = work.whole_seconds()
    if work.stage != "decode":
        return [parts]
    n_part = config.decode.parts_per_job
    jobs = [sum(parts[start : start + n_part]) for start in range(0, len(parts), n_part)]
    shards = work.shard_seconds()
    return [shards, jobs] if shards else [jobs]


def _fits(
    config: PipelineConfig, work: Sequence[Work], hardware: Hardware, devices: int
) -> Iterator[str]:
    for stage in work:
        if not stage.on_device or not stage.part_seconds:
            continue
        used_devices = min(devices, len(stage.part_seconds) * stage.processes)
        # Cores share one memory, GPUs have their own.
        sharing = used_devices if hardware.name == "this_machine" else 1
        needed = stage.memory_bytes * sharing
        if needed <= hardware.memory_bytes:
            yield f"{stage.stage} fits: {needed / 1e9:.1f} of {hardware.memory_bytes / 1e9:.1f} GB."
            continue
        remedy = (
            "Set decode.search_members or decode.dtype=float16."
            if stage.stage == "decode"
            else "Run fewer parts at once, or use other hardware."
        )
        yield (
            f"{stage.stage} does not fit: needs {needed / 1e9:.1f} GB, {hardware.name} has "
            f"{hardware.memory_bytes / 1e9:.1f} GB. {remedy}"
        )
    disk = sum(stage.disk_bytes for stage in work)
    free = shutil.disk_usage(_existing(Path(config.io.root).resolve())).free
    verdict = "fits" if disk <= free else "does not fit"
    yield f"Disk space in {config.io.root} {verdict}: {disk / 1e9:.1f} of {free / 1e9:.1f} GB free."


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _row(cells: Sequence[str]) -> str:
    first, *rest = zip(cells, _WIDTHS, strict=True)
    return first[0].ljust(first[1]) + "".join(f"  {text:>{width}}" for text, width in rest)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _clock(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"

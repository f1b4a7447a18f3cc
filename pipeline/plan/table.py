"""A plan as text: one table, what it rests on, how it would be submitted, and what does not fit."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from pipeline.plan.costs import ModelCosts
from pipeline.plan.hardware import Hardware
from pipeline.plan.sizes import UNITS_A_WORD
from pipeline.plan.work import Work
from pipeline.run.settings import PipelineConfig

_HEADER = ("stage", "parts", "operations", "device hours", "wall clock", "disk GB", "memory GB")
_WIDTHS = (12, 6, 11, 13, 11, 9, 10)
_SLACK = 1.5  # time and memory asked of Slurm for each expected
_SMALLEST_JOB_GB = 8


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
    """The whole plan, for standard output; overrides: of the settings, for the jobs it prints."""
    lines = [
        f"{config.experiment.name}, {config.task.name}: {costs.parameters:,} parameters a member; "
        f"{devices} x {hardware.name} ({hardware.source})",
        "",
        _row(_HEADER),
        *(_row(_cells(one, devices)) for one in work),
        _row(_total(work, devices)),
        "",
        *_foundations(hardware, from_prepared=from_prepared),
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
    hours = sum(sum(one.part_seconds) for one in work) / 3600
    wall = sum(one.wall_seconds(devices) for one in work)
    disk = sum(one.disk_bytes for one in work) / 1e9
    memory = max(one.memory_bytes for one in work) / 1e9
    flops = sum(one.flops for one in work)
    return ("all", "", f"{flops:.2g}", _number(hours), _clock(wall), _number(disk), _number(memory))


def _foundations(hardware: Hardware, *, from_prepared: bool) -> Iterator[str]:
    yield (
        f"Operations are counted on the model; a device is taken to do {hardware.train_flops:.3g} "
        f"a second in training and {hardware.decode_flops:.3g} in decoding."
    )
    if hardware.usable_share is not None:
        yield (
            f"In training that is {hardware.usable_share:.3g} of its peak, "
            f"{hardware.share_source}; plan.usable_share sets your own. Decoding is assumed to use "
            f"the same share."
        )
    if from_prepared:
        yield "Test sets: as prepared."
    else:
        yield (
            f"Test sets: the paper's tables and data.*, {UNITS_A_WORD} units a word (assumed); run "
            f"stages.prepare for the real ones."
        )
    yield (
        "Memory is of one part on each of its devices, without activations; disk is before "
        "compression; prepare, uncertainty, metrics and tables run on a processor, at speeds "
        "measured with the demo."
    )


def _submission(
    config: PipelineConfig, work: Sequence[Work], hardware: Hardware, overrides: Sequence[str]
) -> Iterator[str]:
    yield "On Slurm (docs/cluster.md):"
    given = shlex.join(overrides)
    is_gpu = hardware.name != "this_machine"
    for one in work:
        if not one.on_device or not one.part_seconds:
            continue
        arrays = _arrays(config, one)
        longest = max((max(jobs, default=0.0) for jobs in arrays), default=0.0) / one.processes
        minutes = max(10, ceil(_SLACK * longest / 60))
        memory = one.memory_bytes * (1 if is_gpu else one.processes)
        settings = [
            f"hydra.launcher.timeout_min={minutes}",
            f"hydra.launcher.mem_gb={max(_SMALLEST_JOB_GB, ceil(_SLACK * memory / 1e9))}",
        ]
        if is_gpu:
            settings.append(f"hydra.launcher.gpus_per_node={one.processes}")
        yield (
            f"  python -m stages.{one.stage} {given}{' ' if given else ''}hydra/launcher=slurm "
            f"{' '.join(settings)}  # array of {', then of '.join(str(len(one)) for one in arrays)}"
        )


def _arrays(config: PipelineConfig, work: Work) -> list[list[float]]:
    """Seconds of each job on one device, in the arrays that a stage submits one after the other."""
    parts = work.whole_seconds()
    if work.stage != "decode":
        return [parts]
    at_a_time = config.decode.parts_per_job
    starts = range(0, len(parts), at_a_time)
    whole = [sum(parts[start : start + at_a_time]) for start in starts]
    shared = work.shard_seconds()
    return [shared, whole] if shared else [whole]


def _fits(
    config: PipelineConfig, work: Sequence[Work], hardware: Hardware, devices: int
) -> Iterator[str]:
    for one in (one for one in work if one.part_seconds):
        at_once = min(devices, len(one.part_seconds) * one.processes)
        # Cores share one memory, GPUs have their own.
        shared = at_once if hardware.name == "this_machine" else 1
        needed = one.memory_bytes * shared
        if one.on_device and needed > hardware.memory_bytes:
            yield (
                f"{one.stage} does not fit: {needed / 1e9:.1f} GB of {hardware.name}'s "
                f"{hardware.memory_bytes / 1e9:.1f} GB; "
                + (
                    "decode.search_members or decode.dtype=float16 needs less"
                    if one.stage == "decode"
                    else "fewer parts at once, or other hardware"
                )
            )
        elif one.on_device:
            yield f"{one.stage} fits: {needed / 1e9:.1f} of {hardware.memory_bytes / 1e9:.1f} GB."
    disk = sum(one.disk_bytes for one in work)
    free = shutil.disk_usage(_existing(Path(config.io.root).resolve())).free
    verdict = "fits" if disk <= free else "does not fit"
    yield f"The disk of {config.io.root} {verdict}: {disk / 1e9:.1f} of {free / 1e9:.1f} GB free."


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

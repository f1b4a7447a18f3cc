"""Points of a sweep: folders of results that share decodes, and a summary of all points.

{io.root}/sweep/{task}/ holds decode-KEY and point-KEY. Each is a folder of results like io.root,
with links to what it builds on.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline import tracking
from pipeline.errors import DataError, MachineError, PipelineError
from pipeline.report.sweep import Point, failures, write_summary
from pipeline.run.application import FAILURE_FILE
from pipeline.run.artifacts import Artifact, Provenance, is_complete, write_manifest
from pipeline.run.code import code_digest
from pipeline.run.files import digest, write_json
from pipeline.run.locks import exclusive_lock
from pipeline.run.schema import PipelineConfig
from pipeline.run.settings import MACHINE_KEYS, changed, implementations, plain

_log = logging.getLogger(__name__)
_POINT_FILE = "point.json"
_DID_NOT_END = "its process was killed or is still running elsewhere"
# The most expensive settings that change no number of the main ensemble's search.
_LEFT_OUT: dict[str, Any] = {
    "ensemble.also": {},
    "decode.also": [],
    "decode.subsets_per_size": 0,
    "metrics.resamples": 0,
}


def lean_settings(config: PipelineConfig) -> PipelineConfig:
    """Return the settings without what a sweep leaves out, unless the command line sets it.

    They are also written to a file, from which the jobs of the point's decode read them.
    """
    overrides = HydraConfig.get().overrides.task
    keys = [str(override).lstrip("+").partition("=")[0] for override in overrides]
    given = [key.rpartition("@")[2] for key in keys]
    left_out = {
        key: value
        for key, value in _LEFT_OUT.items()
        if not any(f"{name}.".startswith(f"{key}.") for name in given)
    }
    path = Path(HydraConfig.get().runtime.output_dir) / "point.yaml"
    lean = changed(config, left_out | {"from_config": str(path)})
    path.write_text(OmegaConf.to_yaml(lean, resolve=True), encoding="utf-8")
    _log.info("left out unless set on the command line: %s", ", ".join(left_out) or "nothing")
    return lean


@contextmanager
def decode_folder(config: PipelineConfig) -> Iterator[PipelineConfig]:
    """Yield settings whose io.root is the folder of the decode that this point shares.

    Parts of {io.root}/decode/{task} with the same settings are reused; other parts are decoded.
    """
    root, task = Path(config.io.root), config.task.name
    folder = _decode_folder(config)
    with _locked(folder):
        _link(folder, root, "prepare", "train")
        _hard_link(root / "decode" / task, folder / "decode" / task)
        yield _inside(config, folder)


@contextmanager
def point_folder(config: PipelineConfig) -> Iterator[tuple[PipelineConfig, bool]]:
    """Yield settings whose io.root is the folder of this point, and whether it is complete.

    If the block ends without error, the folder is complete.
    """
    task, decoded = config.task.name, _decode_folder(config)
    made_from = _provenance(config, Artifact(decoded / "decode" / task, "decode"))
    folder = _home(config) / f"point-{made_from.digest[:12]}"
    with _locked(folder):
        _link(folder, Path(config.io.root), "prepare")
        _link(folder, decoded, "decode")
        is_made = is_complete(folder, made_from)
        yield _inside(config, folder), is_made
        if not is_made:
            write_manifest(folder, made_from, [f"metrics/{task}/numbers.json"])


def report_point(config: PipelineConfig, folder: Path, begun: float) -> None:
    """Bring the summary up to date with the point in `folder`, and log the point.

    begun: when the work on the point began, in seconds since 1970.
    """
    hydra = HydraConfig.get()
    metrics = folder / "metrics" / config.task.name
    numbers = json.loads((metrics / "numbers.json").read_text(encoding="utf-8"))
    is_sweep = hydra.mode == RunMode.MULTIRUN
    number = int(hydra.job.num) if is_sweep else 0
    point = Point(number, _swept(hydra.overrides.task), numbers)
    job = Path(hydra.runtime.output_dir)
    write_json(job / _POINT_FILE, point.as_dict())
    home = _home(config)
    with _locked(home / "summary"):
        paths = sorted(job.parent.glob(f"*/{_POINT_FILE}")) if is_sweep else [job / _POINT_FILE]
        points = [_read_point(path) for path in paths]
        written = write_summary(home, points)
        tracking.open_parent(config).artifacts(*written)
    name = point.name([*point.overrides]) or "one point"
    with tracking.open_run(config, "sweep", begun) as log:
        log.metrics(numbers)
        log.artifacts(metrics / "cells.csv")
    _log.info("%s: %d points so far, in %s", name, len(points), home / "summary.md")


def close(sweep: tracking.Sweep) -> None:
    """Add failed points and their reasons to the summary of a sweep that has ended.

    Raises PipelineError naming these points and why they failed.
    """
    jobs = [path.parent.parent for path in sweep.folder.glob("*/.hydra/hydra.yaml")]
    points = [_ended_point(job) for job in jobs]
    failed = [point for point in points if point.reason]
    if not failed:
        return
    for home in {_home(OmegaConf.load(job / ".hydra" / "config.yaml")) for job in jobs}:
        with _locked(home / "summary"):
            written = write_summary(home, points)
    with suppress(MachineError):  # the points may have failed because tracking does
        sweep.log.artifacts(*written)
    raise PipelineError(
        f"{written[0]}: {len(failed)} of {len(points)} points failed: {failures(points)}. "
        "Finished points are kept; the next run makes only these."
    )


def _ended_point(job: Path) -> Point:
    """Return the point of a job that has ended, from the job's folder."""
    failure = job / FAILURE_FILE
    reason = failure.read_text(encoding="utf-8") if failure.is_file() else None
    if (job / _POINT_FILE).is_file():
        return replace(_read_point(job / _POINT_FILE), reason=reason)
    hydra = OmegaConf.load(job / ".hydra" / "hydra.yaml").hydra
    return Point(int(hydra.job.num), _swept(hydra.overrides.task), {}, reason or _DID_NOT_END)


def _read_point(path: Path) -> Point:
    return Point(**json.loads(path.read_text(encoding="utf-8")))


def _home(config: Any) -> Path:
    """Return the folder of all points of a task."""
    return Path(config.io.root) / "sweep" / str(config.task.name)


def _decode_folder(config: PipelineConfig) -> Path:
    keys = ("seed", "task", "ensemble", "decode", "dump")
    key = digest(*(plain(getattr(config, key)) for key in keys))
    return _home(config) / f"decode-{key[:12]}"


def _provenance(config: PipelineConfig, decoded: Artifact) -> Provenance:
    """Return what the measures and metrics of a point are made from."""
    measures = ("extra_measures", "hypothesis_measures")
    code = [
        code_digest("uncertainty", *_plug_ins(config, "uncertainty", *measures)),
        code_digest("metrics", *_plug_ins(config, "metrics", "extra_metrics")),
    ]
    settings = [getattr(config, key) for key in ("seed", "task", "uncertainty", "metrics")]
    return Provenance("sweep", digest(*code), digest(*map(plain, settings)), decoded.as_input)


def _plug_ins(config: PipelineConfig, group: str, *names: str) -> list[Callable[..., Any]]:
    """Return the functions that settings of a group name."""
    functions: list[Callable[..., Any]] = []
    for name in names:
        entries = getattr(getattr(config, group), name)
        functions += implementations(entries, f"{group}.{name}").values()
    return functions


def _inside(config: PipelineConfig, folder: Path) -> PipelineConfig:
    """Return the settings for results in `folder`, without figures and MLflow runs.

    External scores belong to the hypotheses of one decode, so that points have none.
    """
    changes = {"io.root": str(folder), "tracking.enabled": False, "report.figures": {}}
    changes |= {"metrics.scores": {}}
    return changed(config, changes)


def _link(folder: Path, source: Path, *names: str) -> None:
    for name in names:
        target = source / name
        if not target.is_dir():
            raise DataError(f"{target}: no such folder. Run python -m stages.{name} first.")
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(target, folder), target_is_directory=True)


def _hard_link(source: Path, folder: Path) -> None:
    """Make `folder` a copy of `source` by hard links, unless it exists."""
    if source.is_dir() and not folder.exists():
        temporary = folder.with_name(f".{folder.name}.linking")
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(source, temporary, copy_function=os.link)
        temporary.replace(folder)


def _swept(overrides: Iterable[Any]) -> dict[str, str]:
    """Return key -> value of the overrides that are not machine keys."""
    pairs = [str(override).lstrip("+").partition("=") for override in overrides]
    return {key: value for key, _, value in pairs if key.split(".")[0] not in MACHINE_KEYS}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make a folder and wait until no other point works on it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with exclusive_lock(lock, f"sweep in {folder}", wait=True):
        yield

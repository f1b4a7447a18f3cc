"""One point of a sweep over settings from decoding on: `python -m stages.sweep -m KEY=A,B ...`.

Points share what they can: a decode is made once for each of its settings, and measures and
metrics of a point are its own. What is made once is not made again. A point is the main ensemble's
one search and values without intervals, unless the command line asks for more.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from pipeline import tracking
from pipeline.errors import DataError, MachineError, PipelineError
from pipeline.report.sweep import Point, failures, write_summary
from pipeline.run.application import FAILURE_FILE, run
from pipeline.run.artifacts import Artifact, Provenance, is_complete, write_manifest
from pipeline.run.code import code_digest
from pipeline.run.files import digest, write_json
from pipeline.run.locks import exclusive_lock
from pipeline.run.settings import MACHINE_KEYS, PipelineConfig, implementation, plain
from stages.decode import decode
from stages.metrics import metrics
from stages.uncertainty import uncertainty

_log = logging.getLogger(__name__)
_POINT = "point.json"
_DID_NOT_END = "did not end: its process was killed, or goes on elsewhere"
# What costs most and moves no number of the main ensemble's search; a key that is given stands.
_LEFT_OUT: dict[str, Any] = {
    "ensemble.also": {},
    "decode.also": [],
    "decode.subsets_per_size": 0,
    "metrics.resamples": 0,
}


def sweep(config: PipelineConfig) -> None:
    """Make one point and write the summary of the points that are there.

    {io.root}/sweep/{task}/ holds `decode-KEY` and `point-KEY`, each a folder of results like
    io.root itself with links to what it builds on, and summary.csv, .md, .svg of the last sweep.
    """
    config = _lean(config)
    root, task = Path(config.io.root), config.task.name
    home = _home(config)
    decoded = home / f"decode-{_key(config, 'seed', 'task', 'ensemble', 'decode', 'dump')}"
    with _alone(decoded):
        _link(decoded, root, "prepare", "train")
        _start_from(root / "decode" / task, decoded / "decode" / task)
        decode(_inside(config, decoded))
    made_from = _provenance(config, Artifact(decoded / "decode" / task, "decode"))
    point = home / f"point-{made_from.digest[:12]}"
    with _alone(point):
        _link(point, root, "prepare")
        _link(point, decoded, "decode")
        if not is_complete(point, made_from):
            uncertainty(_inside(config, point))
            metrics(_inside(config, point))
            write_manifest(point, made_from, [f"metrics/{task}/headline.json"])
    numbers = json.loads((point / "metrics" / task / "headline.json").read_text(encoding="utf-8"))
    _report(config, home, numbers, point)


def _provenance(config: PipelineConfig, decoded: Artifact) -> Provenance:
    """What the measures and metrics of a point are made from."""
    code = [
        code_digest("uncertainty", *_plug_ins(config.uncertainty.extra_measures)),
        code_digest("metrics", *_plug_ins(config.metrics.extra_metrics)),
    ]
    settings = [getattr(config, key) for key in ("seed", "task", "uncertainty", "metrics")]
    return Provenance("sweep", digest(*code), digest(*map(plain, settings)), decoded.as_input)


def _report(config: PipelineConfig, home: Path, numbers: dict[str, float], point: Path) -> None:
    """Bring the summary of the point's sweep up to date, and log the point."""
    hydra = HydraConfig.get()
    here = Path(hydra.runtime.output_dir)
    one = Point(int(hydra.job.num) if _is_multirun() else 0, _asked(hydra.overrides.task), numbers)
    write_json(here / _POINT, one.as_dict())
    with _alone(home / "summary"):
        paths = sorted(here.parent.glob(f"*/{_POINT}")) if _is_multirun() else [here / _POINT]
        points = [_point(path) for path in paths]
        written = write_summary(home, points)
        tracking.open_parent(config).artifacts(*written)
    name = one.name([*one.overrides]) or "one point"
    with tracking.open_run(config, "sweep", name) as log:
        log.metrics(one.comparable())
        log.artifacts(point / "metrics" / config.task.name / "cells.csv")
    _log.info("%s: %d points so far, in %s", name, len(points), home / "summary.md")


def close(ended: tracking.Sweep) -> None:
    """Write the summary again where points of a sweep failed, with their reasons.

    Raises PipelineError naming these points, and why.
    """
    jobs = [path.parent.parent for path in ended.folder.glob("*/.hydra/hydra.yaml")]
    points = [_ended_point(job) for job in jobs]
    failed = [one for one in points if one.reason]
    if not failed:
        return
    for home in {_home(OmegaConf.load(job / ".hydra" / "config.yaml")) for job in jobs}:
        with _alone(home / "summary"):
            written = write_summary(home, points)
    with suppress(MachineError):  # where the points could not be tracked either
        ended.log.artifacts(*written)
    raise PipelineError(
        f"{len(failed)} of {len(points)} points failed, the others are in {written[0]}: "
        f"{failures(points)}"
    )


def _ended_point(job: Path) -> Point:
    """What became of a job, from its own folder."""
    failure = job / FAILURE_FILE
    reason = failure.read_text(encoding="utf-8") if failure.is_file() else None
    if (job / _POINT).is_file():
        return replace(_point(job / _POINT), reason=reason)
    hydra = OmegaConf.load(job / ".hydra" / "hydra.yaml").hydra
    return Point(int(hydra.job.num), _asked(hydra.overrides.task), {}, reason or _DID_NOT_END)


def _point(path: Path) -> Point:
    return Point(**json.loads(path.read_text(encoding="utf-8")))


def _home(config: Any) -> Path:
    """Where the points of a task lie."""
    return Path(config.io.root) / "sweep" / str(config.task.name)


def _plug_ins(functions: Mapping[str, str]) -> list[Callable[..., Any]]:
    return [implementation(dotted, name) for name, dotted in functions.items()]


def _key(config: PipelineConfig, *keys: str) -> str:
    return digest(*(plain(getattr(config, key)) for key in keys))[:12]


def _inside(config: PipelineConfig, folder: Path) -> PipelineConfig:
    """The same settings for results in `folder`, without figures and runs in MLflow."""
    inside = {"io.root": str(folder), "tracking.enabled": False, "report.figures": {}}
    return _changed(config, inside)


def _lean(config: PipelineConfig) -> PipelineConfig:
    """The settings without what a sweep leaves out and nobody asked for, in a file of their own."""
    asked = [str(one).lstrip("+").partition("=")[0] for one in HydraConfig.get().overrides.task]
    given = [key.rpartition("@")[2] for key in asked]
    left_out = {
        key: value
        for key, value in _LEFT_OUT.items()
        if not any(f"{one}.".startswith(f"{key}.") for one in given)
    }
    path = Path(HydraConfig.get().runtime.output_dir) / "point.yaml"
    lean = _changed(config, left_out | {"from_config": str(path)})
    path.write_text(OmegaConf.to_yaml(lean, resolve=True), encoding="utf-8")
    _log.info("left out, unless it is given: %s", ", ".join(left_out) or "nothing")
    return lean


def _changed(config: PipelineConfig, changes: dict[str, Any]) -> PipelineConfig:
    copy = OmegaConf.create(cast(DictConfig, config))
    OmegaConf.set_readonly(copy, False)
    for key, value in changes.items():
        OmegaConf.update(copy, key, value, merge=False)
    OmegaConf.set_readonly(copy, True)
    return cast(PipelineConfig, copy)


def _link(folder: Path, source: Path, *names: str) -> None:
    for name in names:
        target = source / name
        if not target.is_dir():
            raise DataError(f"{target} must exist: run python -m stages.{name} first")
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(target, folder), target_is_directory=True)


def _start_from(source: Path, folder: Path) -> None:
    """Hard links to the parts of another decode: those with other settings are made anew."""
    if source.is_dir() and not folder.exists():
        temporary = folder.with_name(f".{folder.name}.linking")
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(source, temporary, copy_function=os.link)
        temporary.replace(folder)


def _asked(overrides: Iterable[Any]) -> dict[str, str]:
    """What a point was asked for, without where and how it runs."""
    pairs = [str(one).lstrip("+").partition("=") for one in overrides]
    return {key: value for key, _, value in pairs if key.split(".")[0] not in MACHINE_KEYS}


def _is_multirun() -> bool:
    return HydraConfig.get().mode == RunMode.MULTIRUN


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other point works on this folder; it exists then."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with exclusive_lock(lock, f"sweep in {folder}", wait=True):
        yield


if __name__ == "__main__":
    run(sweep, lock=None, after_sweep=close)

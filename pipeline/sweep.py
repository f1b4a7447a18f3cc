"""Points of stage sweep: folders of results that share decodes.

{io.root}/sweep/{task}/ holds decode-KEY and, for each point, a folder that is named after its
overrides. Each is a folder of results like io.root, with links to what it builds on.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipeline import tracking
from pipeline.errors import ConfigError, DataError
from pipeline.metrics.rejection_of_point import rejection_of_point
from pipeline.multirun import point_of, summarise
from pipeline.report.sweep import Point
from pipeline.run.artifacts import Artifact, Provenance, is_complete, write_manifest
from pipeline.run.code import code_digest
from pipeline.run.files import digest, read_json
from pipeline.run.points import (
    Record,
    folder_in_sweep,
    folder_of_process,
    folder_of_sweep,
    hard_link,
    is_multirun,
    keys_of_job,
    link,
    locked_folder,
    overrides_of_job,
    read_records,
    swept_keys_of_job,
)
from pipeline.run.schema import PipelineConfig
from pipeline.run.settings import changed, implementations, plain

_log = logging.getLogger(__name__)
# The most expensive settings that change no number of the main ensemble's search.
_LEFT_OUT: dict[str, Any] = {
    "ensemble.also": {},
    "decode.also": [],
    "decode.subsets_per_size": 0,
    "metrics.resamples": 0,
}


def lean_settings(config: PipelineConfig) -> PipelineConfig:
    """Return the settings without what a sweep leaves out, unless the command line sets it.

    Measures are at B = 1 and at the beam of the decode, which a sweep may vary. The settings
    are also written to a file, from which the jobs of the point's decode read them. Raises
    ConfigError if settings of data, model or training are swept, since all points share the members
    in io.root.
    """
    given = keys_of_job()
    for key in swept_keys_of_job():
        if re.split("[./]", key)[0] in ("data", "model", "train"):
            raise ConfigError(
                f"{key}: cannot be swept by stage sweep: points share the members in io.root. "
                "Give each value a folder io.root of its own."
            )
    left_out = {key: value for key, value in _LEFT_OUT.items() if not _is_set(key, given)}
    changes = left_out.copy()
    if not _is_set("uncertainty.beam", given):
        changes["uncertainty.beam"] = sorted({1, config.decode.beam})
    path = folder_of_process() / "point.yaml"
    lean = changed(config, changes | {"from_config": str(path)})
    path.write_text(OmegaConf.to_yaml(lean, resolve=True), encoding="utf-8")
    _log.info("left out unless set on the command line: %s", ", ".join(left_out) or "nothing")
    return lean


def _is_set(key: str, given: list[str]) -> bool:
    return any(f"{name}.".startswith(f"{key}.") for name in given)


@contextmanager
def decode_folder(config: PipelineConfig) -> Iterator[PipelineConfig]:
    """Yield settings whose io.root is the folder of the decode that this point shares.

    Parts of {io.root}/decode/{task} with the same settings are reused; other parts are decoded.
    """
    root, task = Path(config.io.root), config.task.name
    folder = _decode_folder(config)
    with locked_folder(folder):
        _link_results(folder, root, "prepare", "train")
        hard_link(root / "decode" / task, folder / "decode" / task)
        yield _inside(config, folder)


@contextmanager
def point_folder(config: PipelineConfig) -> Iterator[tuple[PipelineConfig, bool]]:
    """Yield settings whose io.root is the folder of this point, and whether it is complete.

    If the block ends without error, the folder is complete.
    """
    task, decoded = config.task.name, _decode_folder(config)
    made_from = _provenance(config, Artifact(decoded / "decode" / task, "decode"))
    folder = folder_in_sweep(config)
    with locked_folder(folder):
        _link_results(folder, Path(config.io.root), "prepare")
        _link_results(folder, decoded, "decode")
        is_made = is_complete(folder, made_from)
        yield _inside(config, folder), is_made
        if not is_made:
            write_manifest(folder, made_from, [f"metrics/{task}/numbers.json"])


def report_point(config: PipelineConfig, folder: Path, begun: float) -> None:
    """Bring the summary up to date with the point in `folder`, and log the point.

    begun: when the work on the point began, in seconds since 1970.
    """
    metrics = folder / "metrics" / config.task.name
    numbers = read_json(metrics / "numbers.json", "sweep")
    at_point = rejection_of_point(changed(config, {"io.root": str(folder)}))
    of_metrics = read_json(metrics / "intervals.json", "sweep")
    intervals = {name: ends for name, ends in of_metrics.items() if name not in at_point}
    numbers |= at_point
    home, overrides = folder_of_sweep(config), overrides_of_job()
    point = Point(0, overrides, numbers, None, os.path.relpath(folder, home), intervals)
    points = _points_so_far(folder, point) if is_multirun() else [point]
    tracking.open_parent(config).artifacts(*summarise(home, points))
    name = point.name([*point.overrides]) or "one point"
    with tracking.open_run(config, "sweep", begun) as log:
        log.metrics(numbers)
        log.artifacts(metrics / "cells.csv")
    _log.info("%s: points so far: %d, in %s", name, len(points), home / "summary.md")


def _points_so_far(folder: Path, point: Point) -> list[Point]:
    """Record the point of this job; return those of its multirun that have numbers."""
    record = Record()
    record.write(numbers=point.numbers, intervals=point.intervals, folder=str(folder))
    return [point_of(other) for other in read_records(record.multirun) if "numbers" in other]


def _decode_folder(config: PipelineConfig) -> Path:
    keys = ("seed", "task", "ensemble", "decode", "dump")
    key = digest(*(plain(getattr(config, key)) for key in keys))
    return folder_of_sweep(config) / f"decode-{key[:12]}"


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


def _link_results(folder: Path, source: Path, *names: str) -> None:
    for name in names:
        if not (source / name).is_dir():
            raise DataError(f"{source / name}: no such folder. Run python -m stages.{name} first.")
    link(folder, source, *names)

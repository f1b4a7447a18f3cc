"""A run: its settings, tags and datasets, and what a stage may log to it."""

from __future__ import annotations

import csv
import math
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from omegaconf import DictConfig, OmegaConf

from pipeline.config import MACHINE_KEYS, ROOT, PipelineConfig
from pipeline.parts import file_sha256
from pipeline.tracking.experiment import open_experiment
from pipeline.tracking.inputs import datasets
from pipeline.tracking.names import metric_name
from pipeline.tracking.registry import register
from pipeline.tracking.sweep import sweep_parent

if TYPE_CHECKING:
    from mlflow import MlflowClient

_PARAM_LENGTH = 6000
_BATCH = 100


class RunLog:
    """One run; every method does nothing where tracking is off."""

    def __init__(self, client: MlflowClient | None = None, run_id: str = "") -> None:
        self._client = client
        self._run_id = run_id

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Log finite numbers under ASCII names."""
        if self._client is None:
            return
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [
            Metric(metric_name(name), float(value), now, step)
            for name, value in values.items()
            if math.isfinite(value)
        ]
        for start in range(0, len(metrics), _BATCH * 5):
            self._client.log_batch(self._run_id, metrics=metrics[start : start + _BATCH * 5])

    def artifacts(self, *paths: Path) -> None:
        """Keep files with the run."""
        for path in paths:
            if self._client is not None:
                self._client.log_artifact(self._run_id, str(path))

    def register(self, name: str, manifest: Path) -> None:
        """Keep a JSON file with the run, and as the newest version of a registered model.

        A file that the newest version holds already makes no version.
        """
        if self._client is None:
            return
        self.artifacts(manifest)
        register(self._client, self._run_id, name, manifest)

    def curve(self, name: str, path: Path, step: str) -> None:
        """Log the columns of a CSV as a child run, against its column `step`."""
        if self._client is None:
            return
        run = self._client.get_run(self._run_id)
        tags = {key: value for key, value in run.data.tags.items() if "mlflow." not in key}
        tags["mlflow.parentRunId"] = self._run_id
        child = self._client.create_run(run.info.experiment_id, run_name=name, tags=tags)
        log = RunLog(self._client, child.info.run_id)
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                log.metrics(
                    {column: float(value) for column, value in row.items() if column != step},
                    step=int(row[step]),
                )
        self._client.set_terminated(child.info.run_id)


@contextmanager
def open_run(config: PipelineConfig, stage: str, name: str | None = None) -> Iterator[RunLog]:
    """A run of this stage, under the sweep's parent run where there is one.

    name: what people see; stage and task where none is given.

    Failed where the block raises. Params are all settings of the run, also those that this stage
    may not read: a decode's beam tells the metrics of two runs apart.
    """
    if not config.tracking.enabled:
        yield RunLog()
        return
    task, root = config.task.name, Path(config.io.root)
    client, experiment_id = open_experiment(config.tracking.uri, root, task)
    settings = _all_settings(config)
    tags = {
        "stage": stage,
        "task": task,
        "ensemble": settings.ensemble.name,
        "combination": settings.decode.combination,
        "git": _git_hash(),
        "data": _data_hash(root / "prepare" / task / "manifest.json"),
    }
    parent = sweep_parent()
    if parent:
        tags["mlflow.parentRunId"] = parent
    run = client.create_run(experiment_id, run_name=name or f"{stage} {task}", tags=tags)
    try:
        _log_params(client, run.info.run_id, settings)
        client.log_inputs(run.info.run_id, datasets(root / "prepare" / task, stage))
        yield RunLog(client, run.info.run_id)
    except BaseException:
        client.set_terminated(run.info.run_id, "FAILED")
        raise
    client.set_terminated(run.info.run_id)


def open_parent(config: PipelineConfig) -> RunLog:
    """The parent run of the sweep that this process is a job of; nothing where there is none."""
    parent = sweep_parent()
    if parent is None or not config.tracking.enabled:
        return RunLog()
    client, _ = open_experiment(config.tracking.uri, Path(config.io.root), config.task.name)
    return RunLog(client, parent)


def _all_settings(config: PipelineConfig) -> DictConfig:
    path = config.from_config
    return cast(DictConfig, OmegaConf.load(path) if path else config)


def _data_hash(manifest: Path) -> str:
    return file_sha256(manifest) if manifest.is_file() else "unknown"


def _log_params(client: MlflowClient, run_id: str, config: DictConfig) -> None:
    from mlflow.entities import Param

    params = [
        Param(name, str(value)[:_PARAM_LENGTH])
        for name, value in _leaves(config)
        if name.split(".")[0] not in MACHINE_KEYS
    ]
    for start in range(0, len(params), _BATCH):
        client.log_batch(run_id, params=params[start : start + _BATCH])
    client.log_text(run_id, OmegaConf.to_yaml(config, resolve=True), "settings.yaml")


def _leaves(config: DictConfig, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in map(str, config):
        if OmegaConf.is_missing(config, name):
            continue
        value = config[name]
        if isinstance(value, DictConfig):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield metric_name(f"{prefix}{name}"), value


def _git_hash() -> str:
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return result.stdout.strip() or "unknown"

"""Runs in MLflow: where they are kept, how they are named, what each stage may log."""

from __future__ import annotations

import csv
import fcntl
import logging
import math
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from pipeline.config import MACHINE_KEYS, ROOT, PipelineConfig
from pipeline.errors import MachineError
from pipeline.parts import file_sha256

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)
_PARENT_FILE = "mlflow_parent_run.txt"
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


def metric_name(text: str) -> str:
    """A name that MLflow takes and a person can type: ASCII letters, digits, `_ - . /`."""
    return re.sub(r"[^A-Za-z0-9_./-]+", "_", text).strip("_")


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
    client, experiment_id = _experiment(config.tracking.uri, root, task)
    settings = _all_settings(config)
    tags = {
        "stage": stage,
        "task": task,
        "ensemble": settings.ensemble.name,
        "combination": settings.decode.combination,
        "git": _git_hash(),
        "data": _data_hash(root / "prepare" / task / "manifest.json"),
    }
    parent = _sweep_parent()
    if parent:
        tags["mlflow.parentRunId"] = parent
    run = client.create_run(experiment_id, run_name=name or f"{stage} {task}", tags=tags)
    _log_params(client, run.info.run_id, settings)
    try:
        yield RunLog(client, run.info.run_id)
    except BaseException:
        client.set_terminated(run.info.run_id, "FAILED")
        raise
    client.set_terminated(run.info.run_id)


def open_parent(config: PipelineConfig) -> RunLog:
    """The parent run of the sweep that this process is a job of; nothing where there is none."""
    parent = _sweep_parent()
    if parent is None or not config.tracking.enabled:
        return RunLog()
    client, _ = _experiment(config.tracking.uri, Path(config.io.root), config.task.name)
    return RunLog(client, parent)


class SweepParent(Callback):
    """Creates the store, the experiment and the parent run once, before a sweep's jobs start."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write the parent run's id into the sweep's folder."""
        if not config.tracking.enabled or any(
            str(one).startswith("part=") for one in config.hydra.overrides.task
        ):
            return
        client, experiment_id = _experiment(
            config.tracking.uri, Path(config.io.root), config.task.name
        )
        name = f"sweep {config.hydra.job.name} {' '.join(config.hydra.overrides.task)}"
        run = client.create_run(experiment_id, run_name=name, tags={"task": config.task.name})
        folder = Path(config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _PARENT_FILE).write_text(run.info.run_id, encoding="utf-8")

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Close the parent run."""
        path = Path(config.hydra.sweep.dir) / _PARENT_FILE
        if path.is_file():
            client, _experiment_id = _experiment(
                config.tracking.uri, Path(config.io.root), config.task.name
            )
            client.set_terminated(path.read_text(encoding="utf-8"))


def _experiment(uri: str | None, root: Path, name: str) -> tuple[MlflowClient, str]:
    """The client and the experiment's id; one process at a time may create the local store."""
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    for chatty in ("alembic", "mlflow", "mlflow.store.db.utils"):
        logging.getLogger(chatty).setLevel(logging.WARNING)

    if uri is not None:
        # MLflow's own seven tries take minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        try:
            return _with_experiment(MlflowClient(uri), name, None)
        except MlflowException as error:
            reason = " ".join(str(error).split())
            raise MachineError(
                f"tracking.uri must name an MLflow server that answers, got {uri}: {reason}"
            ) from None
    root.mkdir(parents=True, exist_ok=True)
    with (root / "mlflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        client = MlflowClient(f"sqlite:///{(root / 'mlflow.db').resolve()}")
        return _with_experiment(client, name, (root / "mlartifacts" / name).resolve().as_uri())


def _with_experiment(
    client: MlflowClient, name: str, artifact_location: str | None
) -> tuple[MlflowClient, str]:
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return client, experiment.experiment_id
    return client, client.create_experiment(name, artifact_location=artifact_location)


def _sweep_parent() -> str | None:
    if not HydraConfig.initialized():
        return None
    path = Path(HydraConfig.get().sweep.dir) / _PARENT_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else None


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

"""Log metrics, curves, files and registered models to an MLflow run."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import MachineError
from pipeline.run.files import file_sha256
from pipeline.tracking.experiment import metric_name, one_line_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient


_BATCH = 500


class RunLog:
    """One MLflow run. Without a client, tracking is off and all methods do nothing.

    All methods raise MachineError if MLflow fails.
    """

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
        with one_line_errors(self._client.tracking_uri, f"metrics of run {self._run_id}"):
            for start in range(0, len(metrics), _BATCH):
                self._client.log_batch(self._run_id, metrics=metrics[start : start + _BATCH])

    def artifacts(self, *paths: Path) -> None:
        """Store files with the run."""
        for path in paths:
            if self._client is not None:
                with one_line_errors(self._client.tracking_uri, f"{path} for run {self._run_id}"):
                    self._client.log_artifact(self._run_id, str(path))

    def register(self, name: str, manifest: Path) -> None:
        """Store a JSON file with the run, and as the newest version of a registered model.

        If the newest version is already this file, no version is added.
        """
        if self._client is None:
            return
        self.artifacts(manifest)
        with one_line_errors(self._client.tracking_uri, f"registered model {name}"):
            register(self._client, self._run_id, name, manifest)

    def curve(self, name: str, path: Path, step: str) -> None:
        """Log the columns of a CSV file as metrics of a child run, by its column `step`."""
        if self._client is None:
            return
        child = self._child(self._client, name)
        with ended(child) as log, path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                log.metrics(
                    {column: float(value) for column, value in row.items() if column != step},
                    step=int(row[step]),
                )

    def end(self, *, failed: bool) -> None:
        """End the run."""
        if self._client is not None:
            with one_line_errors(self._client.tracking_uri, f"the end of run {self._run_id}"):
                self._client.set_terminated(self._run_id, "FAILED" if failed else "FINISHED")

    def _child(self, client: MlflowClient, name: str) -> RunLog:
        with one_line_errors(client.tracking_uri, f"run {name}"):
            run = client.get_run(self._run_id)
            tags = {key: value for key, value in run.data.tags.items() if "mlflow." not in key}
            tags["mlflow.parentRunId"] = self._run_id
            child = client.create_run(run.info.experiment_id, run_name=name, tags=tags)
        return RunLog(client, child.info.run_id)


@contextmanager
def ended(log: RunLog) -> Iterator[RunLog]:
    """Yield a run that ends with the block; its status is failed if the block raises."""
    try:
        yield log
    except BaseException:
        with suppress(MachineError):  # the error of the block says more
            log.end(failed=True)
        raise
    log.end(failed=False)


def register(client: MlflowClient, run_id: str, name: str, manifest: Path) -> None:
    """Register a JSON file of a run as the newest version of the model `name`.

    If the newest version is already this file, no version is added.
    """
    from mlflow.exceptions import MlflowException

    sha256 = file_sha256(manifest)
    versions = client.search_model_versions(f"name='{name}'")
    newest = max(versions, key=lambda version: int(version.version), default=None)
    if newest is not None and newest.tags.get("sha256") == sha256:
        return
    if not client.search_registered_models(f"name='{name}'"):
        try:
            client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":  # another process created it
                raise
    source = f"{client.get_run(run_id).info.artifact_uri}/{manifest.name}"
    client.create_model_version(name, source, run_id, tags={"sha256": sha256})

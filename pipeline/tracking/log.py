"""Log metrics, curves, files and registered models to an MLflow run."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean
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

        now = milliseconds(time.time())
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

    def curve(self, name: str, path: Path, begun: float, ended: float) -> None:
        """Log a learning curve as metrics of a child run, by its column `update`.

        begun, ended: when the work behind the curve began and ended, in seconds since 1970.
        """
        if self._client is None:
            return
        child = self._child(self._client, name, begun)
        with ending(child, ended) as log:
            for update, values in read_curve(path).items():
                log.metrics(values, step=update)

    def mean_curve(self, paths: Iterable[Path]) -> None:
        """Log the mean of learning curves, at the updates and of the columns that all have."""
        curves = [read_curve(path) for path in paths] if self._client is not None else []
        for update, values in (curves[0] if curves else {}).items():
            rows = [curve.get(update, {}) for curve in curves]
            names = [name for name in values if all(name in row for row in rows)]
            self.metrics({name: fmean(row[name] for row in rows) for name in names}, step=update)

    def end(self, *, failed: bool, at: float | None = None) -> None:
        """End the run, at a time in seconds since 1970 or now."""
        if self._client is not None:
            with one_line_errors(self._client.tracking_uri, f"the end of run {self._run_id}"):
                status = "FAILED" if failed else "FINISHED"
                self._client.set_terminated(self._run_id, status, milliseconds(at))

    def _child(self, client: MlflowClient, name: str, begun: float) -> RunLog:
        with one_line_errors(client.tracking_uri, f"run {name}"):
            run = client.get_run(self._run_id)
            tags = {key: value for key, value in run.data.tags.items() if "mlflow." not in key}
            tags["mlflow.parentRunId"] = self._run_id
            child = client.create_run(
                run.info.experiment_id, milliseconds(begun), tags=tags, run_name=name
            )
        return RunLog(client, child.info.run_id)


@contextmanager
def ending(log: RunLog, at: float | None = None) -> Iterator[RunLog]:
    """Yield a run that ends with the block; its status is failed if the block raises.

    at: when its work ended, in seconds since 1970; by default when the block ends.
    """
    try:
        yield log
    except BaseException:
        with suppress(MachineError):  # the error of the block says more
            log.end(failed=True, at=at)
        raise
    log.end(failed=False, at=at)


def milliseconds(seconds: float | None) -> int | None:
    """Return a time as MLflow has it; None, which MLflow takes for now, stays None."""
    return None if seconds is None else round(1000 * seconds)


def read_curve(path: Path) -> dict[int, dict[str, float]]:
    """Return update -> metric -> value of a learning curve in CSV."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        int(row.pop("update")): {name: float(value) for name, value in row.items()} for row in rows
    }


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

"""The store of runs: a server by URI, or SQLite beside the results; an experiment a task."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import MachineError

if TYPE_CHECKING:
    from mlflow import MlflowClient


def open_experiment(uri: str | None, root: Path, name: str) -> tuple[MlflowClient, str]:
    """The client and the experiment's id; one process at a time may create the local store.

    Raises MachineError where the server of `uri` does not answer, or the store has no room.
    """
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
        database = (root / "mlflow.db").resolve()
        if not database.exists():
            _create_database(database)
        client = MlflowClient(f"sqlite:///{database}")
        return _with_experiment(client, name, (root / "mlartifacts" / name).resolve().as_uri())


def _create_database(path: Path) -> None:
    """MLflow's empty database, whole or absent: one that was begun could never be used again."""
    from mlflow import MlflowClient
    from sqlalchemy.exc import OperationalError

    building = path.with_name(f".{path.name}.building")
    for left_over in path.parent.glob(f"{building.name}*"):  # its journal too
        left_over.unlink()
    try:
        MlflowClient(f"sqlite:///{building}")
    except OperationalError as error:
        raise MachineError(
            f"{path} must have a place that can be written: {error.orig}; tracking=off does without"
        ) from None
    building.replace(path)


def _with_experiment(
    client: MlflowClient, name: str, artifact_location: str | None
) -> tuple[MlflowClient, str]:
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return client, experiment.experiment_id
    return client, client.create_experiment(name, artifact_location=artifact_location)

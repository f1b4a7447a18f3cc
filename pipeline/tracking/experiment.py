"""The store of runs: a server by URI, or SQLite beside the results; an experiment a task."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import MachineError
from pipeline.run.locks import exclusive_lock

if TYPE_CHECKING:
    from mlflow import MlflowClient


@contextmanager
def taking(store: str, what: str) -> Iterator[None]:
    """Raise MachineError where the MLflow at `store` (a URI) does not take `what`."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError) as error:
        raise MachineError(
            f"MLflow at {store} must take {what}, got: {reason_of(error)}; no result is lost: "
            f"run the stage again when it does, or with tracking=off"
        ) from None


def reason_of(error: Exception) -> str:
    """What an error of MLflow's says, on one line, without the SQL and links that may follow."""
    return " ".join(str(error).partition("[SQL:")[0].split()) or type(error).__name__


def metric_name(text: str) -> str:
    """A name that MLflow takes and a person can type: ASCII letters, digits, `_ - . /`."""
    return re.sub(r"[^A-Za-z0-9_./-]+", "_", text).strip("_")


def open_experiment(uri: str | None, root: Path, name: str) -> tuple[MlflowClient, str]:
    """The client and the experiment's id; one process at a time may create the local store.

    Raises MachineError where the server of `uri` does not answer, the local store cannot be used,
    or the experiment was deleted.
    """
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    for chatty in ("alembic", "mlflow"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # It tells an error of the database with its traceback, beside raising it.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

    if uri is not None:
        # MLflow's own seven tries take minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        try:
            return _with_experiment(MlflowClient(uri), name, None)
        except MlflowException as error:
            raise MachineError(
                f"tracking.uri must name an MLflow server that answers, got {uri}: "
                f"{reason_of(error)}"
            ) from None
    root.mkdir(parents=True, exist_ok=True)
    database = (root / "mlflow.db").resolve()
    store = f"sqlite:///{database}"
    with (
        exclusive_lock(root / "mlflow.lock", f"MLflow in {root}", wait=True),
        taking(store, f"experiment {name}"),
    ):
        if not database.exists():
            _create_database(database)
        place = (root / "mlartifacts" / name).resolve().as_uri()
        return _with_experiment(MlflowClient(store), name, place)


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
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return client, client.create_experiment(name, artifact_location=artifact_location)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            experiment = client.get_experiment_by_name(name)  # another process was faster
    if experiment.lifecycle_stage != "active":
        raise MachineError(
            f"experiment {name} of MLflow must not be deleted: restore it by "
            f"MLFLOW_TRACKING_URI={shlex.quote(client.tracking_uri)} mlflow experiments restore "
            f"--experiment-id {experiment.experiment_id}, or set tracking=off"
        )
    return client, str(experiment.experiment_id)

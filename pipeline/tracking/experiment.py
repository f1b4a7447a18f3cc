"""MLflow's store (a server, or SQLite beside the results) and the experiment of each task."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from pipeline.errors import MachineError
from pipeline.run.extras import install_command, is_installed
from pipeline.run.locks import exclusive_lock
from pipeline.run.settings import PipelineConfig
from pipeline.tracking.artifacts import ARTIFACTS, follow_artifacts

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)
_SQLITE = "sqlite:///"


def is_tracked(config: PipelineConfig) -> bool:
    """Whether runs are logged: tracking is enabled, and MLflow is installed.

    If it is not, one warning says so, in a multirun by the process that starts the jobs.
    """
    if not config.tracking.enabled or is_installed("mlflow"):
        return config.tracking.enabled
    is_job = HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN
    if not is_job:
        _warn_once()
    return False


@cache
def _warn_once() -> None:
    _log.warning(
        "tracking: off, since mlflow is not installed. Run %s, or set tracking=off.",
        install_command("tracking"),
    )


@contextmanager
def one_line_errors(store: str, what: str) -> Iterator[None]:
    """Turn failures of MLflow while it stores `what` into a MachineError of one line.

    store: URI of the MLflow store. Stages log after their results are saved.
    """
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, sqlite3.Error) as error:
        raise MachineError(
            f"MLflow at {store}: could not store {what} ({_reason(error)}). Results are already "
            "saved. Run the stage again once MLflow works, or with tracking=off."
        ) from None


def _reason(error: Exception) -> str:
    """The message of an error of MLflow on one line, without the SQL that may follow."""
    return " ".join(str(error).partition("[SQL:")[0].split()) or type(error).__name__


def metric_name(text: str) -> str:
    """Return a name that MLflow accepts and a person can type: ASCII letters, digits, `_-./`."""
    return re.sub(r"[^A-Za-z0-9_./-]+", "_", text).strip("_")


def open_experiment(uri: str | None, root: Path, name: str) -> tuple[MlflowClient, str]:
    """Return a client and the id of the experiment `name`, which is created if necessary.

    uri: an MLflow server, sqlite:///FILE, or None for the database in the folder `root`. A lock
    lets one process at a time create a database; artifacts lie beside it, also after both were
    copied or moved. Raises MachineError if the server does not answer, the database cannot be
    used, or the experiment was deleted.
    """
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    for name_of_logger in ("alembic", "mlflow"):
        logging.getLogger(name_of_logger).setLevel(logging.WARNING)
    # MLflow logs database errors with a traceback although it also raises them.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

    if uri is not None and not uri.startswith(_SQLITE):
        # MLflow's default of seven retries takes minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        try:
            return _with_experiment(MlflowClient(uri), name, None)
        except MlflowException as error:
            raise MachineError(
                f"tracking.uri: no MLflow server answers at {uri} ({_reason(error)}). "
                "Start the server, or set tracking=off."
            ) from None
    file = root / "mlflow.db" if uri is None else Path(uri.removeprefix(_SQLITE))
    database = file.resolve()
    folder, store = database.parent, f"{_SQLITE}{database}"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        exclusive_lock(file.with_suffix(".lock"), f"MLflow in {file.parent}", wait=True),
        one_line_errors(store, f"experiment {name}"),
    ):
        if not database.exists():
            _create_database(database)
        follow_artifacts(database)
        artifact_location = (folder / ARTIFACTS / name).as_uri()
        return _with_experiment(MlflowClient(store), name, artifact_location)


def _create_database(path: Path) -> None:
    """Create MLflow's empty database, complete or absent: MLflow cannot open a partial one."""
    from mlflow import MlflowClient
    from sqlalchemy.exc import OperationalError

    building = path.with_name(f".{path.name}.building")
    for left_over in path.parent.glob(f"{building.name}*"):  # and its journal
        left_over.unlink()
    try:
        client = MlflowClient(f"sqlite:///{building}")
        client.delete_experiment("0")  # `Default`, which MLflow makes and nothing here uses
    except OperationalError as error:
        raise MachineError(
            f"{path}: cannot be created ({error.orig}). "
            "Choose another io.root, or set tracking=off."
        ) from None
    building.replace(path)


def _with_experiment(
    client: MlflowClient, name: str, artifact_location: str | None
) -> tuple[MlflowClient, str]:
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return client, client.create_experiment(name, artifact_location)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            experiment = client.get_experiment_by_name(name)  # another process was faster
    if experiment.lifecycle_stage != "active":
        raise MachineError(
            f"experiment {name}: deleted in MLflow. Restore it by "
            f"MLFLOW_TRACKING_URI={shlex.quote(client.tracking_uri)} mlflow experiments restore "
            f"--experiment-id {experiment.experiment_id}, or set tracking=off."
        )
    return client, str(experiment.experiment_id)

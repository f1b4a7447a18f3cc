"""What MLflow does not take, as one sentence: results lie on the disk by then, whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.errors import MachineError


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

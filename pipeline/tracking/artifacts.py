"""The artifacts of runs lie beside the SQLite database, which stores their absolute paths."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

_log = logging.getLogger(__name__)
ARTIFACTS = "mlartifacts"  # the folder of all artifacts
# The columns of MLflow's tables that hold addresses of artifacts.
_COLUMNS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
_PATIENCE_SECONDS = 60.0  # while other processes write to the database


def follow_artifacts(database: Path) -> None:
    """Make a database that was copied or moved point to the artifacts beside it, and log that.

    Otherwise runs would write into the old folder, and MLflow's page would read it. `database` is
    an absolute path.
    """
    here = (database.parent / ARTIFACTS).as_uri()
    connection = sqlite3.connect(database, timeout=_PATIENCE_SECONDS)
    with closing(connection), connection:
        rows = connection.execute("SELECT artifact_location FROM experiments")
        folders = {location.rpartition("/")[0] for (location,) in rows}
        # Experiments that this pipeline did not make may keep their artifacts elsewhere.
        for old in sorted(path for path in folders - {here} if path.endswith(f"/{ARTIFACTS}")):
            for table, column in _COLUMNS:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) "
                    f"WHERE substr({column}, 1, ?) = ?",
                    (here, len(old) + 1, len(old) + 1, f"{old}/"),
                )
            _log.info("%s: was copied or moved; its artifacts are now those in %s", database, here)

"""MLflow needs seconds to create a database, so that tests in this process copy one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.tracking import experiment


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    experiment._create_database(path)
    return path


@pytest.fixture(autouse=True)
def copied_database(empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        experiment, "_create_database", lambda path: shutil.copy(empty_database, path)
    )

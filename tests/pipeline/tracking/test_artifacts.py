"""A folder of results that was copied or moved keeps its runs, and new runs write into it."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.tracking import open_run
from pipeline.tracking.artifacts import follow_artifacts

from .test_run import settings

pytestmark = pytest.mark.slow


def log_run(root: Path, text: str) -> None:
    manifest = root.parent / "ensemble.json"
    manifest.write_text(text)
    with open_run(settings(root), "metrics") as log:
        log.register("nmt_ende ensembles", manifest)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_runs_of_a_folder_in_a_new_place_write_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, copied, moved = (tmp_path / name / "outputs" for name in ("old place", "copied", "moved"))
    for folder in (old, copied, moved):
        folder.parent.mkdir()
    log_run(old, "[1]")
    before = files(old)
    shutil.copytree(old, copied)
    with caplog.at_level(logging.INFO):
        log_run(copied, "[2]")
        log_run(copied, "[3]")
        assert caplog.text.count("was copied or moved; its artifacts are now those in") == 1
        assert files(old) == before
        old.rename(moved)
        log_run(moved, "[2]")
    assert caplog.text.count("was copied or moved") == 2
    assert not old.exists()
    for root in (copied, moved):
        client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
        for run in client.search_runs(["1"]):
            assert run.info.artifact_uri.startswith(root.as_uri())
            names = [artifact.path for artifact in client.list_artifacts(run.info.run_id)]
            assert sorted(names) == ["ensemble.json", "settings.yaml"]
        for version in client.search_model_versions():
            address = client.get_model_version_download_uri(version.name, version.version)
            assert address.startswith(root.as_uri())


def test_experiments_of_others_keep_their_artifacts_where_they_are(tmp_path: Path) -> None:
    log_run(tmp_path / "outputs", "[1]")
    database = tmp_path / "outputs" / "mlflow.db"
    elsewhere = (tmp_path / "elsewhere").as_uri()
    MlflowClient(f"sqlite:///{database}").create_experiment("mine", artifact_location=elsewhere)
    moved = tmp_path / "moved"
    (tmp_path / "outputs").rename(moved)
    follow_artifacts(moved / "mlflow.db")
    with closing(sqlite3.connect(moved / "mlflow.db")) as connection:
        rows = dict(connection.execute("SELECT name, artifact_location FROM experiments"))
    assert rows["mine"] == elsewhere
    assert rows["nmt_ende"] == (moved / "mlartifacts" / "nmt_ende").as_uri()

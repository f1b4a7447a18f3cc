"""Failures of MLflow are reported in one line that says what failed and what to do."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.errors import MachineError
from pipeline.run.settings import ROOT
from pipeline.tracking import open_run
from pipeline.tracking.experiment import open_experiment
from pipeline.tracking.log import register

from .test_run import settings

pytestmark = pytest.mark.slow


def test_deleted_experiment_is_restored_by_the_command_in_the_message(tmp_path: Path) -> None:
    config = settings(tmp_path / "out: put")
    with open_run(config, "metrics"):
        pass
    client = MlflowClient(f"sqlite:///{tmp_path / 'out: put' / 'mlflow.db'}")
    client.delete_experiment("1")
    words = r"experiment nmt_ende: deleted in MLflow\. Restore it by"
    with pytest.raises(MachineError, match=words) as refused, open_run(config, "metrics"):
        pass
    advice = re.search(r"Restore it by (.*), or set tracking=off", str(refused.value))
    assert advice is not None
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", advice[1]], env=environment, check=True, capture_output=True)
    with open_run(config, "metrics"):
        pass
    assert [run.info.status for run in client.search_runs(["1"])] == ["FINISHED"] * 2


def test_experiment_deleted_during_a_run_is_reported(tmp_path: Path) -> None:
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    words = r"MLflow at sqlite:///.*mlflow\.db: could not store metrics of .*active.*\. Results are"
    with pytest.raises(MachineError, match=words), open_run(settings(tmp_path), "metrics") as log:
        client.delete_experiment("1")
        log.metrics({"bleu": 1.0})


def test_a_damaged_database_is_reported_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(MachineError, match=r"metrics of run .*no such table: metrics\)\."),
        open_run(settings(tmp_path), "metrics") as log,
    ):
        with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
            database.execute("DROP TABLE metrics")
        log.metrics({"bleu": 1.0})
    assert "Traceback" not in caplog.text


def test_a_read_only_database_is_reported(tmp_path: Path) -> None:
    open_experiment(None, tmp_path, "nmt_ende")
    (tmp_path / "mlflow.db").chmod(0o444)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pipeline.tracking.experiment import open_experiment\n"
        "open_experiment(None, Path(sys.argv[1]), 'asr')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    if os.geteuid() == 0:  # root can write everywhere unless it gives up that capability
        command = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-all", *command]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "MachineError: MLflow at sqlite:///" in last
    assert "could not store experiment asr ((sqlite3.OperationalError) attempt to write" in last


def test_an_experiment_that_another_process_just_created_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = open_experiment(None, tmp_path, "nmt_ende")
    find = MlflowClient.get_experiment_by_name
    answers = iter([lambda *_: None, find])
    monkeypatch.setattr(
        MlflowClient, "get_experiment_by_name", lambda *given: next(answers)(*given)
    )
    assert open_experiment(None, tmp_path, "nmt_ende")[1] == first


def test_a_model_that_another_process_just_registered_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tmp_path / "ensemble.json"
    client, experiment = open_experiment(None, tmp_path, "nmt_ende")
    run = client.create_run(experiment).info.run_id
    monkeypatch.setattr(MlflowClient, "search_registered_models", lambda *_, **__: [])
    for members in ("[1]", "[2]"):
        manifest.write_text(members)
        register(client, run, "ensembles", manifest)
    versions = client.search_model_versions("name='ensembles'")
    assert sorted(int(version.version) for version in versions) == [1, 2]

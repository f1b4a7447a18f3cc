"""`make ui` starts MLflow's server on the runs of a folder, and says where to click."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from pipeline.tracking import ui
from pipeline.tracking.experiment import open_experiment

pytestmark = pytest.mark.slow


def test_server_shows_the_runs_of_a_moved_folder_until_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Mock()
    server.wait.side_effect = [KeyboardInterrupt, 0]
    server.poll.return_value = None
    monkeypatch.setattr(ui, "_answers", Mock(side_effect=[False, False, True]))
    start = Mock(return_value=server)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(signal, "signal", Mock())
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(sys, "argv", ["ui", "--root", str(tmp_path / "moved"), "--port", "5001"])
    open_experiment(None, tmp_path / "outputs", "nmt_ende")
    (tmp_path / "outputs").rename(tmp_path / "moved")
    ui.main()
    starting, ready = capsys.readouterr().out.splitlines()
    assert starting.startswith("Starting MLflow")
    assert "Open http://127.0.0.1:5001 in a browser. Press 'Model training'" in ready
    database = tmp_path / "moved" / "mlflow.db"
    assert f"sqlite:///{database}" in start.call_args.args[0]
    server.terminate.assert_called_once_with()
    with closing(sqlite3.connect(database)) as connection:
        rows = dict(connection.execute("SELECT name, artifact_location FROM experiments"))
    assert rows["nmt_ende"] == (tmp_path / "moved" / "mlartifacts" / "nmt_ende").as_uri()


def test_a_port_in_use_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlflow.db").touch()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["ui", "--root", str(tmp_path), "--port", str(port)])
        with pytest.raises(SystemExit, match=f"port {port}: is in use. Choose another one with"):
            ui.main()


def test_a_folder_without_runs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ui", "--root", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"mlflow\.db: no such file\. Run a stage first"):
        ui.main()

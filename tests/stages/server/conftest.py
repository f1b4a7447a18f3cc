"""An MLflow server of the machine's own, and a sweep and its tables that logged to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.stages.test_sweep import stage
from tests.stages.trained_members import prepare, train

_UP_SECONDS = 90


@dataclass(frozen=True)
class Logged:
    """Where the server answers, and the folder of results of what logged to it."""

    uri: str
    root: Path


@pytest.fixture(scope="session")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    """A sweep of two points, then metrics and tables of one of them, on a server."""
    folder = tmp_path_factory.mktemp("server")
    root = folder / "outputs"
    prepare(root / "prepare" / "nmt_ende")
    (root / "prepare" / "nmt_ende" / "data_card.md").write_text("# Card\n", encoding="utf-8")
    train(root / "train" / "nmt_ende", root / "prepare" / "nmt_ende")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    uri = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
    try:
        _wait_for(uri, folder / "server.log")
        to_server = ("tracking=mlflow_server", f"tracking.uri={uri}")
        stage("sweep", root, "-m", "uncertainty.temperature=range(1,3)", *to_server)
        (point, *_) = sorted((root / "sweep" / "nmt_ende").glob("point-*"))
        for name in ("metrics", "tables"):
            stage(name, point, *to_server)
        yield Logged(uri, root)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=30)


def _wait_for(uri: str, log: Path) -> None:
    deadline = time.monotonic() + _UP_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{uri}/health", timeout=5):
                return
        except (URLError, OSError):
            if time.monotonic() > deadline:
                pytest.fail(f"no server in {_UP_SECONDS} s: {log.read_text()[-1500:]}")
            time.sleep(0.3)

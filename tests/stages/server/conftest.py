"""A local MLflow server, and a sweep and its tables that are logged to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.stages.test_sweep import stage
from tests.stages.trained_members import prepare, train

_START_SECONDS = 300


@dataclass(frozen=True)
class Logged:
    """The address of the server, and the root folder of the runs that were logged to it."""

    uri: str
    root: Path


@dataclass(frozen=True)
class Server:
    """A server process and its address."""

    uri: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """Stop the server and its workers if it is running."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(timeout=120)


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Run a server that keeps its database and artifacts in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    # Do not start the five processes that wait for jobs with language models.
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, process_group=0, env=environment
        )
    server = Server(f"http://127.0.0.1:{port}", process)
    try:
        _wait_for(server, folder / "server.log")
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    """Log a sweep of two points, and metrics and tables of one point, to a server."""
    folder = tmp_path_factory.mktemp("server")
    root = folder / "outputs"
    prepare(root / "prepare" / "nmt_ende")
    train(root / "train" / "nmt_ende", root / "prepare" / "nmt_ende")
    with served(folder) as server:
        to_server = ("tracking=mlflow_server", f"tracking.uri={server.uri}")
        stage("sweep", root, "-m", "uncertainty.temperature=range(1,3)", *to_server)
        (point, *_) = sorted((root / "sweep" / "nmt_ende").glob("point-*"))
        for name in ("metrics", "tables"):
            stage(name, point, "uncertainty.temperature=1", *to_server)
        yield Logged(server.uri, root)


def _wait_for(server: Server, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{server.uri}/health", timeout=5):
                return
        except (URLError, OSError):
            if time.monotonic() > deadline or server.process.poll() is not None:
                pytest.fail(f"the server did not start: {log.read_text()[-1500:]}")
            time.sleep(0.3)

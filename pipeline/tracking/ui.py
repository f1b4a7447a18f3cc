"""MLflow's page of the runs in a folder of results: `python -m pipeline.tracking.ui`."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from pipeline.tracking.artifacts import follow_artifacts

_HOST = "127.0.0.1"


def main() -> None:
    """Print where the page is, and run MLflow's server until Ctrl-C, for this machine only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="outputs", help="folder of results (default: outputs)")
    parser.add_argument("--port", default=5000, type=int, help="port of the page (default: 5000)")
    arguments = parser.parse_args()
    database = Path(arguments.root).resolve() / "mlflow.db"
    if not database.is_file():
        sys.exit(f"error: {database}: no such file. Run a stage first, which logs to it.")
    if _answers(arguments.port):
        sys.exit(f"error: port {arguments.port}: is in use. Choose another one with --port.")
    follow_artifacts(database)
    print("Starting MLflow, which takes some seconds.", flush=True)
    # The processes for jobs with language models are not needed.
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["PYTHONWARNINGS"] = "ignore:starlette.middleware.wsgi is deprecated"  # MLflow's
    store = f"sqlite:///{database}"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store]
    command += ["--registry-store-uri", store, "--host", _HOST, "--port", str(arguments.port)]
    command += ["--workers", "1", "--uvicorn-opts", "--log-level=warning"]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The server ends by SIGTERM without a traceback, but not by the SIGINT of a terminal.
    server = subprocess.Popen(command, start_new_session=True)
    try:
        while server.poll() is None and not _answers(arguments.port):
            time.sleep(0.2)
        if server.poll() is None:
            print(
                f"Open http://{_HOST}:{arguments.port} in a browser. Press 'Model training' there "
                "(at the top left; the browser remembers it), then choose a task. Ctrl-C ends the "
                "server.",
                flush=True,
            )
        sys.exit(server.wait())
    except KeyboardInterrupt:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((_HOST, port)) == 0


if __name__ == "__main__":
    main()

"""An interrupted sweep ends the decodes that its points have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient

from pipeline.run.settings import ROOT

from .trained_members import prepare_and_train

pytestmark = pytest.mark.usefixtures("side_by_side")


def alive(session: int) -> list[psutil.Process]:
    """Return the processes of a session, whatever process groups they are in."""
    processes = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


def has_jobs_of_decode(session: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any(
            "stages.decode" in process.cmdline() and process.children()
            for process in alive(session)
        )
    return False


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    ("how", "send"),
    [(signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)],  # as a shell does at Ctrl-C
)
def test_no_process_of_a_sweep_outlives_it(
    how: signal.Signals, send: Callable[[int, int], None], tmp_path: Path
) -> None:
    root = tmp_path / "out"
    prepare_and_train(root)
    command = [sys.executable, "-m", "stages.sweep", "-m", "experiment=laptop", f"io.root={root}"]
    command += ["ensemble.seeds=[1,2]", "decode.beam=2", "uncertainty.beam=2"]
    sweep = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs inherit an ignored SIGINT, and so would the run.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert wait_until(lambda: has_jobs_of_decode(sweep.pid), 120)
    send(sweep.pid, how)
    _, err = sweep.communicate(timeout=60)
    assert sweep.returncode == 128 + how
    assert "Traceback" not in err, err
    assert err.count("error: stage sweep: interrupted; finished parts are kept") == 1
    assert wait_until(lambda: not alive(sweep.pid), 10), alive(sweep.pid)
    (parent,) = MlflowClient(f"sqlite:///{root / 'mlflow.db'}").search_runs(["1"])
    assert parent.info.status == "FAILED"

"""Two runs that would write to one place: the second refuses and names the first."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import wait_until


@pytest.mark.parametrize(
    ("stage", "task"),
    [("uncertainty", "nmt_ende"), ("tables", "nmt_enfr")],
)
def test_second_run_refuses(
    stage: str, task: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.before(stage, tmp_path / "outputs")
    first = run.start(stage)
    wait_until(lambda: run.has_started(stage), first)
    first.send_signal(signal.SIGSTOP)
    second = run.start(stage, f"task.name={task}")
    out, err = second.communicate(timeout=120)
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 1, out + err
    assert err.count("\n") == 1, err
    assert f"at a time may write here, and process {first.pid} does: wait for it" in err
    out, err = first.communicate(timeout=120)
    assert first.returncode == 0, out + err
    assert run.made(stage) == undisturbed.run.made(stage)

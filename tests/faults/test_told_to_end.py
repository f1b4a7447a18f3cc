"""SIGTERM and Ctrl-C: one sentence, a code that says which, nothing half made."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import wait_until


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end(
    how: signal.Signals, any_stage: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.before(any_stage, tmp_path / "outputs")
    # A shell's background jobs inherit an ignored SIGINT, and so would the run.
    process = run.start(any_stage, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    wait_until(lambda: run.has_started(any_stage), process)
    # Soon enough for a stage that runs faster than the undisturbed one did.
    time.sleep(random.Random(any_stage).uniform(0, min(0.2, undisturbed.seconds[any_stage] / 10)))
    process.send_signal(how)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + how, err
    assert err == (
        f"error: stage {any_stage} was told to end: "
        "what is whole is kept, and the next run goes on\n"
    )
    whole = undisturbed.run.made(any_stage)
    assert run.shows(any_stage).items() <= whole.items()
    assert "was told to end" in (run.root / "logs" / _log_of(any_stage)).read_text()
    run.finish(any_stage)
    assert run.made(any_stage) == whole


def _log_of(stage: str) -> str:
    return f"{stage}.log" if stage == "tables" else f"{stage}.nmt_ende.log"

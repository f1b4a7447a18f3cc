"""SIGTERM and Ctrl-C: one line, an exit code that names the signal, no incomplete results."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import wait_until


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_stage_keeps_only_complete_results(
    how: signal.Signals, any_stage: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.copy_before(any_stage, tmp_path / "outputs")
    # A shell's background jobs inherit an ignored SIGINT, and so would the run.
    file = random.Random(f"{any_stage} {how}").randint(1, undisturbed.files[any_stage])
    with run.started(
        any_stage,
        held_before=file,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        wait_until(lambda: run.files_moved() >= file, process)
        process.send_signal(how)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + how, err
    assert err == (
        f"error: stage {any_stage}: interrupted; finished parts are kept and the next run resumes\n"
    )
    complete = undisturbed.run.digests(any_stage)
    assert run.visible_digests(any_stage).items() <= complete.items()
    assert "interrupted" in (run.root / "logs" / _log_of(any_stage)).read_text()
    run.finish(any_stage)
    assert run.digests(any_stage) == complete


def _log_of(stage: str) -> str:
    return f"{stage}.log" if stage == "tables" else f"{stage}.nmt_ende.log"

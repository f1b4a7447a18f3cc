"""Of two runs that would write to the same folder, the second stops and names the first."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import SmallRun, wait_until


def _assert_second_refuses(first: list[str], second: list[str], lock: Path, run: SmallRun) -> None:
    """Pause a run that holds a lock, start a second one, then let the first finish."""
    with run.started(*first) as holder:
        wait_until(lambda: lock.is_file() and lock.stat().st_size > 0, holder)
        holder.send_signal(signal.SIGSTOP)
        with run.started(*second) as refused:
            out, err = refused.communicate(timeout=120)
        holder.send_signal(signal.SIGCONT)
        assert refused.returncode == 1, out + err
        assert err.count("\n") == 1, err
        assert f"{lock}: locked by another run" in err
        assert f"(process {holder.pid}). Wait for it to finish" in err
        out, err = holder.communicate(timeout=120)
        assert holder.returncode == 0, out + err


@pytest.mark.parametrize(
    ("stage", "task", "lock"),
    [
        ("uncertainty", "nmt_ende", "uncertainty.nmt_ende"),
        ("tables", "nmt_enfr", "tables"),
    ],
)
def test_second_run_of_a_stage_is_refused(
    stage: str, task: str, lock: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.copy_before(stage, tmp_path / "outputs")
    second = [stage, f"task.name={task}"]
    _assert_second_refuses([stage], second, run.root / "hydra" / "locks" / lock, run)
    assert run.digests(stage) == undisturbed.run.digests(stage)


def test_second_run_with_the_same_output_folder_is_refused(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """The lock of io.out also holds for runs with different io.root."""
    run = undisturbed.run.copy_before("uncertainty", tmp_path / "outputs")
    measured = undisturbed.run.root / "uncertainty" / "nmt_ende"
    part = next(path.parent for path in measured.glob("*/token.parquet"))
    store = run.root / "decode" / "nmt_ende" / part.name / "store.h5"
    out = tmp_path / "out"
    command = ["uncertainty", f"io.store='{store}'", f"io.out='{out}'"]
    elsewhere = f"io.root='{tmp_path / 'elsewhere'}'"
    _assert_second_refuses(command, [*command, elsewhere], out / ".building" / "lock", run)
    assert {path.name for path in out.iterdir()} == {path.name for path in part.iterdir()}
    # Sequence measures differ: io.store has no stores of members, from which X-BLEU is computed.
    assert (out / "token.parquet").read_bytes() == (part / "token.parquet").read_bytes()

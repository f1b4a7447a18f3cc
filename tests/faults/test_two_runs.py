"""Two runs that would write to one place: the second refuses and names the first."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import SmallRun, wait_until


def _refuses_beside(first: list[str], second: list[str], lock: Path, run: SmallRun) -> None:
    """Stop a run that holds a lock, start another, and let the first end."""
    with run.started(*first) as holder:
        wait_until(lambda: lock.is_file() and lock.stat().st_size > 0, holder)
        holder.send_signal(signal.SIGSTOP)
        with run.started(*second) as other:
            out, err = other.communicate(timeout=120)
        holder.send_signal(signal.SIGCONT)
        assert other.returncode == 1, out + err
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
def test_second_run_refuses(
    stage: str, task: str, lock: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.before(stage, tmp_path / "outputs")
    other = [stage, f"task.name={task}"]
    _refuses_beside([stage], other, run.root / "hydra" / "locks" / lock, run)
    assert run.made(stage) == undisturbed.run.made(stage)


def test_second_run_into_one_folder_refuses(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """io.out is guarded by itself: the runs may have other folders of results."""
    run = undisturbed.run.before("uncertainty", tmp_path / "outputs")
    measured = undisturbed.run.root / "uncertainty" / "nmt_ende"
    part = next(path for path in measured.iterdir() if path.is_dir())
    store = run.root / "decode" / "nmt_ende" / part.name / "store.h5"
    out = tmp_path / "out"
    command = ["uncertainty", f"io.store='{store}'", f"io.out='{out}'"]
    elsewhere = f"io.root='{tmp_path / 'elsewhere'}'"
    _refuses_beside(command, [*command, elsewhere], out / ".building" / "lock", run)
    assert {path.name for path in out.iterdir()} == {path.name for path in part.iterdir()}
    # The others have X-BLEU too, from the members' stores.
    assert (out / "token.parquet").read_bytes() == (part / "token.parquet").read_bytes()

"""The system refuses to write: one line, no incomplete results, and the next run completes."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import SmallRun

# A little more than what Hydra, the lock and the log of a run need.
_ROOM_BYTES = 2**16


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small tmpfs to fill")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _ends_in_spite(
    run: SmallRun,
    stage: str,
    undisturbed: Undisturbed,
    reason: str,
    make_room: Callable[[], object],
    preexec_fn: Callable[[], object] | None = None,
) -> None:
    """Run a stage that may not write: one line, complete results only; then run it with room."""
    with run.started(stage, preexec_fn=preexec_fn) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1, out[-2000:] + err[-4000:]
    _says_what_was_refused(err, run, reason)
    assert "Traceback" not in out, out[-4000:]
    whole = undisturbed.run.made(stage)
    shown = run.shows(stage)
    assert shown.items() < whole.items()
    make_room()
    run.finish(stage)
    assert run.made(stage) == whole


def _says_what_was_refused(err: str, run: SmallRun, reason: str) -> None:
    """Expect one line with place and reason; for a stage of parts one per job, and one in total."""
    beside = ("warning: ", "Error executing job with overrides: ")  # Hydra's
    said = [line for line in err.splitlines() if not line.startswith(beside)]
    assert said, err
    # Hydra's own files, written before a run has its settings, come without their place.
    places = (f"error: {run.root}", "error: io.root: cannot be read or written")
    assert all(line.startswith(places) for line in said), err
    # Of torch's own writer the cause is not known.
    reasons = (reason, "must be writable and have room, a part of it could not be written")
    assert any(one in said[0] for one in reasons), err
    if len(said) > 1:
        assert said[-1].startswith(places[0]), err
        assert " parts failed (" in said[-1], err
        assert all(any(one in line for one in reasons) for line in said[:-1]), err


def test_full_disk(any_stage: str, small_disk: Path, undisturbed: Undisturbed) -> None:
    run = undisturbed.run.before(any_stage, small_disk / "outputs")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - _ROOM_BYTES))
    _ends_in_spite(
        run, any_stage, undisturbed, "(No space left on device)", make_room=ballast.unlink
    )


def test_limit_on_the_size_of_files(
    any_stage: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.before(any_stage, tmp_path / "outputs")
    made = [undisturbed.run.root / path for path in undisturbed.run.made(any_stage)]
    most_bytes = max(path.stat().st_size for path in made) // 2
    limits = (most_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    _ends_in_spite(
        run,
        any_stage,
        undisturbed,
        "(File too large)",
        make_room=lambda: None,  # the limit falls with the process
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )


@pytest.mark.parametrize("folder", [".", "uncertainty"])
def test_read_only_folder(folder: str, undisturbed: Undisturbed, tmp_path: Path) -> None:
    run = undisturbed.run.before("uncertainty", tmp_path / "outputs")
    (run.root / "uncertainty").mkdir()
    (run.root / folder).chmod(0o555)
    # Root may write everywhere: it runs without that capability.
    command = run.command("uncertainty")
    if os.geteuid() == 0:
        capabilities = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={capabilities}", "--inh-caps=-all", *command]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    (run.root / folder).chmod(0o755)
    assert refused.returncode == 1, refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert f"error: {run.root}" in refused.stderr
    assert "(Permission denied)" in refused.stderr
    run.finish("uncertainty")
    assert run.made("uncertainty") == undisturbed.run.made("uncertainty")

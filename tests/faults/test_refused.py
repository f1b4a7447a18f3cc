"""A stage that cannot write reports it in one line and leaves only complete results."""

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

# A little more than Hydra, the lock and the log of a run need.
_FREE_BYTES = 2**16


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 64 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small tmpfs to fill")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _assert_fails_then_completes(
    run: SmallRun,
    stage: str,
    undisturbed: Undisturbed,
    reason: str,
    free_space: Callable[[], object],
    preexec_fn: Callable[[], object] | None = None,
) -> None:
    """Run a stage that cannot write, check its message and files, then let it complete."""
    with run.started(stage, preexec_fn=preexec_fn) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1, out[-2000:] + err[-4000:]
    _assert_message_names_path_and_reason(err, run, reason)
    assert "Traceback" not in out, out[-4000:]
    complete = undisturbed.run.digests(stage)
    visible = run.visible_digests(stage)
    assert visible.items() < complete.items()
    free_space()
    run.finish(stage)
    assert run.digests(stage) == complete


def _assert_message_names_path_and_reason(err: str, run: SmallRun, reason: str) -> None:
    """Expect one line with path and reason; a stage with parts has one per job and a summary."""
    from_hydra = ("warning: ", "Error executing job with overrides: ")
    errors = [line for line in err.splitlines() if not line.startswith(from_hydra)]
    assert errors, err
    # Hydra's own files are written before the settings are known, so their path is not named.
    prefixes = (f"error: {run.root}", "error: io.root: cannot be read or written")
    assert all(line.startswith(prefixes) for line in errors), err
    # torch's own writer does not tell the cause.
    reasons = (reason, "must be writable and have room, a part of it could not be written")
    assert any(reason in errors[0] for reason in reasons), err
    if len(errors) > 1:
        assert errors[-1].startswith(prefixes[0]), err
        assert " parts failed (" in errors[-1], err
        assert all(any(reason in line for reason in reasons) for line in errors[:-1]), err


def test_stage_on_a_full_disk_completes_once_there_is_space(
    any_stage: str, small_disk: Path, undisturbed: Undisturbed
) -> None:
    run = undisturbed.run.copy_before(any_stage, small_disk / "outputs")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - _FREE_BYTES))
    _assert_fails_then_completes(
        run, any_stage, undisturbed, "(No space left on device)", free_space=ballast.unlink
    )


def test_stage_with_a_file_size_limit_completes_without_it(
    any_stage: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run = undisturbed.run.copy_before(any_stage, tmp_path / "outputs")
    files = [undisturbed.run.root / path for path in undisturbed.run.digests(any_stage)]
    most_bytes = max(path.stat().st_size for path in files) // 2
    limits = (most_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    _assert_fails_then_completes(
        run,
        any_stage,
        undisturbed,
        "(File too large)",
        free_space=lambda: None,  # the limit ends with the process
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )


@pytest.mark.parametrize("folder", [".", "uncertainty"])
def test_read_only_folder_is_named(folder: str, undisturbed: Undisturbed, tmp_path: Path) -> None:
    run = undisturbed.run.copy_before("uncertainty", tmp_path / "outputs")
    (run.root / "uncertainty").mkdir()
    (run.root / folder).chmod(0o555)
    # Root can write everywhere unless it gives up that capability.
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
    assert run.digests("uncertainty") == undisturbed.run.digests("uncertainty")

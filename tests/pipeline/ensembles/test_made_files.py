from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from pipeline.ensembles.made_files import WEIGHTS, made


def write(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"whole")


def killed_halfway(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"who")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_leaves_nothing_that_passes_for_whole(tmp_path: Path) -> None:
    folder = tmp_path / "key"
    process = multiprocessing.get_context("spawn").Process(
        target=made, args=(folder, killed_halfway)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not folder.exists()
    hashes = made(folder, write)
    assert (folder / WEIGHTS).read_bytes() == b"whole"
    assert list(hashes) == [WEIGHTS]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]

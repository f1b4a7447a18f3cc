from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from pipeline.ensembles.training_run import WEIGHTS, made
from pipeline.run.settings import ROOT

KILLED_HALFWAY = """
import os, signal, sys
from pathlib import Path
from pipeline.ensembles.training_run import WEIGHTS, made

def half(folder):
    (folder / WEIGHTS).write_bytes(b"who")
    os.kill(os.getpid(), signal.SIGKILL)

made(Path(sys.argv[1]), half)
"""


def write(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"whole")


def test_a_process_that_is_killed_leaves_nothing_that_passes_for_whole(tmp_path: Path) -> None:
    folder = tmp_path / "key"
    command = [sys.executable, "-c", KILLED_HALFWAY, str(folder)]
    process = subprocess.run(command, cwd=ROOT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert not folder.exists()
    hashes = made(folder, write)
    assert (folder / WEIGHTS).read_bytes() == b"whole"
    assert list(hashes) == [WEIGHTS]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]

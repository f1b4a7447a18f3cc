"""A run killed while it creates MLflow's database does not stop the next run from doing so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.run.settings import ROOT
from tests.faults.small_run import HELD

_OPEN = """
import sys
from pathlib import Path
from pipeline.tracking.experiment import open_experiment
print(open_experiment(None, Path(sys.argv[1]), "nmt_ende")[1])
"""


@pytest.mark.parametrize("moment", ["being written", "complete but not moved into place"])
def test_database_is_created_after_a_killed_attempt(moment: str, tmp_path: Path) -> None:
    root = tmp_path / "outputs"
    building, move_counter = root / ".mlflow.db.building", root.with_name("outputs.moved")
    command = [sys.executable, "-c", _OPEN, str(root)]
    environment = {**os.environ, "PYTHONPATH": f"{HELD}:{ROOT}", "HELD": str(root)}
    first = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**environment, "HELD_BEFORE": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        wanted = building if moment == "being written" else move_counter
        while not (wanted.exists() and wanted.stat().st_size):
            assert first.poll() is None
            time.sleep(0.001)
    finally:
        first.kill()
        first.wait()
    assert building.exists()
    assert not (root / "mlflow.db").exists()
    again = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert sorted(path.name for path in root.iterdir()) == ["mlflow.db", "mlflow.lock"]

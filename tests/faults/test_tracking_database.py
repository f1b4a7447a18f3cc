"""kill -9 while MLflow's database is made: the next run makes it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from pipeline.config import ROOT

_OPEN = """
import sys
from pathlib import Path
from pipeline.tracking.experiment import open_experiment
print(open_experiment(None, Path(sys.argv[1]), "nmt_ende")[1])
"""


def test_killed_while_the_database_is_made(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _OPEN, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as first:
        while not list(tmp_path.glob("*mlflow.db*")):
            assert first.poll() is None
            time.sleep(0.01)
        time.sleep(0.5)
        first.kill()
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db", "mlflow.lock"]

"""Run Python commands as a reader of the pages does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.run.settings import ROOT

# No download can succeed in this environment.
OFFLINE = {"http_proxy": "http://nowhere.invalid", "https_proxy": "http://nowhere.invalid"}


def run_python(
    arguments: Sequence[str], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder; it must succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done

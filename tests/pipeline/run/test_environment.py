"""Numeric libraries use one thread per process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pipeline.run.environment import THREAD_COUNTS
from pipeline.run.settings import ROOT

pytestmark = pytest.mark.slow

CODE = """
import stages.decode
import numpy, pyarrow, sklearn, torch
from threadpoolctl import threadpool_info
counts = {(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()}
assert len(counts) > 1
print({count for _, count in counts} | {torch.get_num_threads(), pyarrow.cpu_count()}, end="")
"""


def test_numeric_libraries_of_a_stage_have_one_thread() -> None:
    environment = {k: value for k, value in os.environ.items() if k not in THREAD_COUNTS}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "{1}"), done.stderr

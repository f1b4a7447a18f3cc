"""The environment variables of every process that runs a stage."""

from __future__ import annotations

import os

THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_VARIABLES = {
    # One thread per process and as many processes as cores: two threads on busy cores are slower.
    **dict.fromkeys(THREAD_COUNTS, "1"),
    # glibc keeps freed blocks up to this size. Giving each one back to the system costs a fifth of
    # the time of training in page faults.
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    # A process of joblib would warn about the semaphores of workers that were interrupted.
    "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning",
}


def set_environment() -> None:
    """Set the variables that the user has not set, for this process and the ones it starts.

    Numeric libraries read the thread counts when they are loaded, so call this before the first of
    them is imported. glibc and Python read theirs at start: these hold in child processes only.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)

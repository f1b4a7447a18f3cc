"""The environment variables of every process that runs a stage."""

from __future__ import annotations

import os

THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_VARIABLES = {
    # One thread per process, and as many processes as cores: more threads on busy cores are slower.
    **dict.fromkeys(THREAD_COUNTS, "1"),
    # glibc keeps freed blocks up to this size. Returning them to the system would cost a fifth of
    # the training time in page faults.
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    # Files get their names when they are complete, so that HDF5's own locks protect nothing. They
    # fail on file systems without locks.
    "HDF5_USE_FILE_LOCKING": "FALSE",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    # joblib would warn about the semaphores of interrupted workers.
    "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning",
}


def set_environment() -> None:
    """Set the variables that the user has not set, for this process and the ones it starts.

    Numeric libraries and HDF5 read their variables when they are loaded, so call this before the
    first of them is imported. glibc and Python read theirs at start, so those take effect only in
    child processes.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)

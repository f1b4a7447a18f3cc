"""Checking a decode store that nobody vouches for, in a process that may crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from pipeline.errors import MachineError

# Exit codes of a process that a file brought down.
_CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT, -signal.SIGFPE}
_CHECK = """
import json, sys
from pathlib import Path
sys.path[:] = json.loads(sys.argv[1])
from pipeline.store.faults import store_faults
print(json.dumps(store_faults(Path(sys.argv[2]))))
"""


def validate(path: str | Path) -> list[str]:
    """Sentences on what is wrong with a store, each naming file, dataset, row and rule; [] if fine.

    Memory stays bounded whatever the size of the store. A file that cannot be read is one sentence;
    so is one that crashes the HDF5 library, which trusts what a file says of its own layout. Raises
    MachineError where the check itself cannot run, for want of memory for one.
    """
    command = [sys.executable, "-c", _CHECK, json.dumps(sys.path), os.fspath(path)]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    if check.returncode == 0:
        faults: list[str] = json.loads(check.stdout)
        return faults
    if check.returncode in _CRASHES:
        reason = signal.Signals(-check.returncode).name
        return [f"{path} must be whole and sound HDF5, got a file that ends its reader: {reason}"]
    reason = (check.stderr.splitlines() or [f"exit code {check.returncode}"])[-1]
    raise MachineError(f"{path} could not be checked: {reason}")

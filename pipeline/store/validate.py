"""Checking a decode store that nobody vouches for, in a process that may crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
    so is one that crashes the HDF5 library, which trusts what a file says of its own layout.
    """
    command = [sys.executable, "-c", _CHECK, json.dumps(sys.path), os.fspath(path)]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    if check.returncode == 0:
        faults: list[str] = json.loads(check.stdout)
        return faults
    reason = f"signal {-check.returncode}"
    if check.returncode > 0:
        reason = (check.stderr.splitlines() or ["no reason given"])[-1]
    return [f"{path} must be whole and sound HDF5, got a file that ends its reader: {reason}"]

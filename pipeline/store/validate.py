"""Checking a decode store that nobody vouches for."""

from __future__ import annotations

from pathlib import Path

from pipeline.store.child import in_child
from pipeline.store.faults import store_faults


def validate(path: str | Path) -> list[str]:
    """Sentences on what is wrong with a store, each naming file, dataset, row and rule; [] if fine.

    Memory stays bounded whatever the size of the store. A file that cannot be read is one sentence;
    so is one that crashes the HDF5 library. Raises MachineError where the check itself cannot run.
    """
    return in_child(store_faults, [Path(path)])[0]

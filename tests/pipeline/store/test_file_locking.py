"""Stores on file systems without locks, or whose lock another program holds."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import StoreError
from pipeline.store import open_store

Write = Callable[..., Path]


def test_stages_do_not_lock_stores(write_store: Write) -> None:
    path = write_store()
    with path.open("rb") as other_program:
        fcntl.flock(other_program, fcntl.LOCK_EX)
        with open_store(path) as store:
            assert store.n_sentence > 0


def test_without_the_environment_of_a_stage_the_error_names_the_variable(
    write_store: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path: Path = write_store()

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, f"unable to lock file ({os.strerror(errno.ENOLCK)})")

    monkeypatch.setattr("h5py.File", refused)
    with pytest.raises(StoreError, match=r"no locks\. Set .* HDF5_USE_FILE_LOCKING=FALSE"):
        open_store(path)

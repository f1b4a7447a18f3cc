from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

from pipeline.store import open_store
from pipeline.store.text_warnings import text_warnings


def test_texts_that_are_not_as_people_write_them_are_counted(
    write_store: Callable[..., Path],
) -> None:
    path = write_store()
    with open_store(path) as store:
        assert list(text_warnings(store)) == []
    with h5py.File(path, "r+") as file:
        for row in (0, 2):
            file["/hypothesis/text"][row] = "a b@@ c ."
        file["/sentence/reference"][3] = "a &apos;s b"
    with open_store(path) as store:
        warnings = [warning.removeprefix(f"{path}: ") for warning in text_warnings(store)]
    assert [warning.partition(" texts")[0] for warning in warnings] == [
        "/hypothesis/text: 2 of 6",
        "/hypothesis/text: 2 of 6",
        "/sentence/reference: 1 of 7",
    ]


@pytest.mark.slow
def test_the_command_line_warns(write_store: Callable[..., Path]) -> None:
    path = write_store()
    with h5py.File(path, "r+") as file:
        file["/hypothesis/text"][:] = ["▁a ▁b"] * 6
    command = [sys.executable, "-m", "pipeline.store", "validate", path]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f"{path}: a valid decode store\n")
    assert "/hypothesis/text: 6 of 6 texts have subword markers" in result.stderr

"""Every fault of a file is one sentence that names file, dataset, row and rule."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.store import open_store, validate

Write = Callable[..., Path]


def _set_row(name: str, row: int, value: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][row] = value

    return change


def _resize_members(file: h5py.File) -> None:
    values = file["/token/logprob"][:, :2]
    del file["/token/logprob"]
    file["/token/logprob"] = values


def _scalar(file: h5py.File) -> None:
    del file["/sentence/id"]
    file["/sentence/id"] = 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set_row("/token/logprob", 4, np.nan), "dataset /token/logprob, row 4, must not be NaN"),
        (_set_row("/token/logprob", 4, 0.5), "/token/logprob, row 4, must be a log-probability"),
        (_set_row("/token/entropy_expr", 2, -1.0), "/token/entropy_expr, row 2, must be an entr"),
        (_set_row("/token/entropy_prex", 2, np.inf), "/token/entropy_prex, row 2, must be an entr"),
        (_set_row("/token/cross_prex", 2, -1.0), "/token/cross_prex, row 2, must be a cross"),
        (_set_row("/token/id", 3, 11), r"/token/id, row 3, must lie in \[0, vocab_size=11\)"),
        (_set_row("/sentence/id", 2, 5), "/sentence/id, row 2, must be the position"),
        (_set_row("/sentence/flag", 0, 0), "/sentence/flag, row 0, must have bit 4"),
        (_set_row("/hypothesis/member", 1, 7), "/hypothesis/member, row 1, must lie in"),
        (_set_row("/hypothesis/token_offset", 2, 0), "/hypothesis/token_offset, row 2, must not"),
        (_set_row("/sentence/hypothesis_offset", 7, 9), "hypothesis_offset must run from 0 to 6"),
        (
            lambda file: file.attrs.update(combination="member"),
            r"member, row 0, must lie in \[0, 3",
        ),
        (_scalar, r"/sentence/id must be \[sentence\]"),
        (lambda file: file.attrs.update(schema="uncertainty-decode/0"), "attribute schema must be"),
        (lambda file: file.attrs.update(complete=False), "attribute complete must be true"),
        (lambda file: file.attrs.update(n_member=2, members=["a", "b"]), "/token/logprob must be"),
        (lambda file: file.pop("/token/cross_expr"), "dataset /token/cross_expr must be there"),
        (_resize_members, r"/token/logprob must be \[token, member\]"),
    ],
)
def test_a_fault_is_named(write_store: Write, change: Callable[[h5py.File], None], message: str):
    path = write_store()
    with h5py.File(path, "r+") as file:
        change(file)
    faults = validate(path)
    assert faults
    assert faults[0].startswith(f"{path}: ")
    assert any(re.search(message, fault) for fault in faults), faults


@pytest.mark.parametrize("kept", [0, 100, 0.5, 0.95])
def test_truncated_files(write_store: Write, kept: float):
    path = write_store(n_sentence=60)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content) if kept < 1 else kept)])
    (fault,) = validate(path)
    assert str(path) in fault
    with pytest.raises(StoreError):
        open_store(path)


def test_foreign_files(tmp_path: Path):
    path = tmp_path / "text.h5"
    path.write_text("not HDF5")
    assert "must be a whole HDF5 file" in validate(path)[0]
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    assert "attribute schema must be" in validate(tmp_path / "other.h5")[0]
    assert "got no file" in validate(tmp_path / "none.h5")[0]


def test_command_line(write_store: Write, tmp_path: Path):
    path = write_store()
    command = [sys.executable, "-m", "pipeline.store", "validate"]
    good = subprocess.run([*command, path], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stdout) == (0, f"{path}: a valid decode store\n")
    none = tmp_path / "none.h5"
    bad = subprocess.run([*command, path, none], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert str(none) in bad.stdout

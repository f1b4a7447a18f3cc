"""Every fault of a store is reported with the file, the dataset and the row."""

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
from pipeline.store.validate import store_faults

Write = Callable[..., Path]


def _set_row(name: str, row: int, value: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][row] = value

    return change


def _resize_members(file: h5py.File) -> None:
    values = file["/token/logprob"][:, :2]
    del file["/token/logprob"]
    file["/token/logprob"] = values


_ELSEWHERE = "/token/entropy_prex: must be a dataset that is stored in the file itself"


def _link(file: h5py.File, target: object) -> None:
    del file["/token/entropy_prex"]
    file["/token/entropy_prex"] = target


def _virtual(file: h5py.File) -> None:
    """Make a dataset whose values are in a missing file; HDF5 reads them as 0."""
    layout = h5py.VirtualLayout(file["/token/id"].shape, "float32")
    layout[:] = h5py.VirtualSource("none.h5", "x", layout.shape)
    del file["/token/entropy_prex"]
    file.create_virtual_dataset("/token/entropy_prex", layout)


def _narrow(file: h5py.File) -> None:
    _link(file, file["/token/entropy_prex"][:].astype("float16"))


def _long_texts(file: h5py.File) -> None:
    texts = file["/hypothesis/text"][:].astype("S65537")
    del file["/hypothesis/text"]
    file["/hypothesis/text"] = texts


def _huge(file: h5py.File) -> None:
    """Give datasets shapes of terabytes without any data."""
    for name, dataset in list(file["/token"].items()):
        shape, dtype = (2**40, *dataset.shape[1:]), dataset.dtype
        del file["/token"][name]
        file["/token"].create_dataset(name, shape, dtype, chunks=(1024, *shape[1:]))
    file["/hypothesis/token_offset"][-1] = 2**40


def _scalar(file: h5py.File) -> None:
    del file["/sentence/id"]
    file["/sentence/id"] = 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set_row("/token/logprob", 4, np.nan), "dataset /token/logprob, row 4: must not be NaN"),
        (_set_row("/token/logprob", 4, 0.5), "/token/logprob, row 4: must be a log-prob"),
        (_set_row("/token/entropy_expr", 2, -1.0), "/token/entropy_expr, row 2: must be an entr"),
        (_set_row("/token/entropy_prex", 2, np.inf), "/token/entropy_prex, row 2: must be an entr"),
        (_set_row("/token/cross_prex", 2, -1.0), "/token/cross_prex, row 2: must be a cross"),
        (_set_row("/token/id", 3, 11), r"/token/id, row 3: must be in \[0, vocab_size=11\)"),
        (_set_row("/sentence/id", 2, 5), "/sentence/id, row 2: must be the position"),
        (_set_row("/sentence/flag", 0, 0), "/sentence/flag, row 0: must not be 0"),
        (_set_row("/hypothesis/member", 1, 7), "/hypothesis/member, row 1: must be in"),
        (
            _set_row("/hypothesis/token_offset", 2, 0),
            "/hypothesis/token_offset, row 2: must increase",
        ),
        (_set_row("/sentence/hypothesis_offset", 7, 9), "hypothesis_offset: must run from 0 to 6"),
        (
            lambda file: file.attrs.update(combination="member"),
            r"member, row 0: must be in \[0, n_member=3",
        ),
        (_scalar, r"/sentence/id: must be \[sentence\]"),
        (
            lambda file: file.attrs.update(schema="uncertainty-decode/0"),
            "attribute schema: must be",
        ),
        (lambda file: file.attrs.update(complete=False), "attribute complete: must be True"),
        (lambda file: file.attrs.update(n_member=2, members=["a", "b"]), "/token/logprob: must be"),
        (lambda file: file.pop("/token/cross_expr"), "dataset /token/cross_expr: missing"),
        (_resize_members, r"/token/logprob: must be \[token, member\]"),
        (_set_row("/hypothesis/finished", 1, 2), "/hypothesis/finished, row 1: must be 0 or 1"),
        (_set_row("/hypothesis/score", 1, np.nan), "/hypothesis/score, row 1: must not be NaN"),
        (_set_row("/sentence/flag", 1, 4), "/sentence/flag, row 1: must have bit 4 only"),
        (_set_row("/sentence/group", 3, b""), "/sentence/group, row 3: must not be empty"),
        (_set_row("/sentence/group", 3, b"\xff"), "/sentence/group, row 3: not UTF-8"),
        (
            _set_row("/sentence/original", 5, b"toy:1"),
            "original, row 5: must be unique .got 'toy:1",
        ),
        (_set_row("/hypothesis/text", 2, b"\xff"), "/hypothesis/text, row 2: not UTF-8"),
        (_long_texts, "/hypothesis/text: must be text of at most 65536 bytes .got .S65537"),
        (_narrow, "/token/entropy_prex: must be float32 .got float16"),
        (lambda file: file.attrs.update(members="abc"), "attribute members: must be a list"),
        (
            lambda file: file.attrs.update(length_penalty="1"),
            "length_penalty: must be a finite num",
        ),
        (lambda file: file.attrs.update(log_base="2"), "attribute log_base: must be 'e'"),
        (lambda file: _link(file, h5py.SoftLink("/token/cross_prex")), _ELSEWHERE),
        (lambda file: _link(file, h5py.SoftLink("/nowhere")), _ELSEWHERE),
        (lambda file: _link(file, h5py.ExternalLink("none.h5", "/x")), _ELSEWHERE),
        (lambda file: _link(file, file.create_group("group")), _ELSEWHERE),
        (_virtual, _ELSEWHERE),
        (_huge, "dataset /token/id: has rows that were never written"),
    ],
)
def test_fault_names_dataset_and_row(
    write_store: Write, change: Callable[[h5py.File], None], message: str
):
    path = write_store()
    with h5py.File(path, "r+") as file:
        change(file)
    faults = store_faults(path)
    assert faults
    assert faults[0].startswith(f"{path}: ")
    assert any(re.search(message, fault) for fault in faults), faults


def test_rows_that_were_never_written_are_rejected(write_store: Write):
    path = write_store()
    with h5py.File(path, "r+") as file:
        file["/token/logprob"][4, 1] = np.nan
    with open_store(path) as store:
        assert len(store.read("/token/logprob", 0, 4)) == 4
        with pytest.raises(StoreError, match="/token/logprob, row 4: must not be NaN"):
            store.read("/token/logprob", 2, 6)


def test_stores_of_other_toolkits_are_valid(write_store: Write):
    """Fixed-length texts, 1 for true, an unknown flag bit, and wider or big-endian numbers."""
    path = write_store()
    with h5py.File(path, "r+") as file:
        for name, value in dict(file.attrs).items():
            if isinstance(value, str):
                file.attrs[name] = np.bytes_(value)
        file.attrs["complete"] = np.uint8(1)
        file.attrs["members"] = np.array([b"a", b"b", b"c"])
        for name in ("ensemble", "task", "test_set", "beam", "length_penalty", "log_base"):
            del file.attrs[name]
        for name in ("reference", "group", "original"):
            del file["/sentence"][name]
        file["/sentence/flag"][0] = 128
        for name, dtype in (("entropy_prex", ">f4"), ("logprob", "f8")):
            values = file["/token"][name][:].astype(dtype)
            del file["/token"][name]
            file["/token"][name] = values
        texts = file["/hypothesis/text"][:].astype("S10")
        del file["/hypothesis/text"]
        file["/hypothesis/text"] = texts
    assert store_faults(path) == []
    with open_store(path) as store:
        assert (store.combination, store.members) == ("prex", ["a", "b", "c"])
        assert store.best_texts()[1] == "text 10"
        assert store.references() == [None] * 7
        assert store.groups() is store.originals() is None


@pytest.mark.parametrize("kept", [0, 100, 0.5, 0.95])
def test_truncated_files_are_rejected(write_store: Write, kept: float):
    path = write_store(n_sentence=60)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content) if kept < 1 else kept)])
    (fault,) = validate(path)
    assert str(path) in fault
    with pytest.raises(StoreError):
        open_store(path)


def test_files_that_are_not_stores_are_rejected(tmp_path: Path):
    path = tmp_path / "text.h5"
    path.write_text("not HDF5")
    assert "not a complete HDF5 file" in validate(path)[0]
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    assert "attribute schema: must be" in validate(tmp_path / "other.h5")[0]
    for name in ("none.h5", "x" * 300, "."):
        (fault,) = validate(tmp_path / name)
        assert str(tmp_path) in fault


@pytest.mark.slow
def test_the_command_line_reports_each_file(write_store: Write, tmp_path: Path):
    path = write_store()
    command = [sys.executable, "-m", "pipeline.store", "validate"]
    good = subprocess.run([*command, path], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stdout) == (0, f"{path}: a valid decode store\n")
    none = tmp_path / "none.h5"
    bad = subprocess.run([*command, path, none], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert str(none) in bad.stdout

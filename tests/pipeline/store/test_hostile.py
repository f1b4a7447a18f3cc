"""Malicious and damaged stores are rejected by name and do no harm."""

from __future__ import annotations

import os
import re
import signal
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.errors import MachineError, StoreError
from pipeline.store import check_stores, open_store, validate
from pipeline.store.child import in_child

Write = Callable[..., Path]
HUGE = 2**40


def _replace(file: h5py.File, name: str, shape: tuple[int, ...], **layout: object) -> None:
    dtype = file[name].dtype
    del file[name]
    file.create_dataset(name, shape, layout.pop("dtype", dtype), **layout)


def _chunked(file: h5py.File) -> None:
    for name, dataset in list(file["/token"].items()):
        _replace(file, f"/token/{name}", (HUGE, *dataset.shape[1:]), chunks=True)
    file["/hypothesis/token_offset"][-1] = HUGE


def _contiguous(file: h5py.File) -> None:
    for name, dataset in list(file["/token"].items()):
        _replace(file, f"/token/{name}", (HUGE, *dataset.shape[1:]))
    file["/hypothesis/token_offset"][-1] = HUGE


def _sentences(file: h5py.File) -> None:
    for name in ("id", "source", "reference", "flag"):
        _replace(file, f"/sentence/{name}", (HUGE,), chunks=True)
    _replace(file, "/sentence/hypothesis_offset", (HUGE + 1,), chunks=True)


def _members(file: h5py.File) -> None:
    file.attrs["n_member"] = HUGE
    del file.attrs["members"]
    for name in ("logprob", "entropy_member"):
        _replace(file, f"/token/{name}", (len(file["/token/id"]), HUGE), chunks=(1, 1))


def _vocabulary(file: h5py.File) -> None:
    file.attrs["vocab_size"] = HUGE
    shape = (len(file["/token/id"]), 3, HUGE)
    file.create_dataset("/token/full_logprob", shape, "f4", chunks=(1, 1, 1024))


def _text(file: h5py.File) -> None:
    n_row = len(file["/hypothesis/text"])
    _replace(file, "/hypothesis/text", (n_row,), dtype=h5py.string_dtype("utf-8", 2**31 - 1))


@pytest.mark.parametrize(
    "change", [_chunked, _contiguous, _sentences, _members, _vocabulary, _text]
)
def test_hostile_shapes_are_rejected_without_using_the_memory(
    write_store: Write, change: Callable[[h5py.File], None]
):
    path = write_store()
    with h5py.File(path, "r+") as file:
        change(file)
    assert path.stat().st_size < 2**20
    (fault, *_) = validate(path)
    assert str(path) in fault
    assert "/" in fault.removeprefix(str(path)), fault  # names a dataset
    tracemalloc.start()
    try:
        with pytest.raises(StoreError):
            open_store(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**22


@pytest.mark.parametrize("kind", ["soft", "external", "virtual", "raw"])
def test_hostile_datasets_of_other_files_are_not_followed(
    write_store: Write, tmp_path: Path, kind: str
):
    path, secret = write_store(), tmp_path / "secret.h5"
    with h5py.File(path, "r+") as file:
        name = "/token/entropy_prex"
        values = file[name][:]
        with h5py.File(secret, "w") as secret_file:
            secret_file["x"] = values
        del file[name]
        if kind == "soft":
            file[name] = h5py.SoftLink("/token/cross_prex")
        elif kind == "external":
            file[name] = h5py.ExternalLink(str(secret), "/x")
        elif kind == "virtual":
            layout = h5py.VirtualLayout(values.shape, "f4")
            layout[:] = h5py.VirtualSource(str(secret), "x", values.shape, "f4")
            file.create_virtual_dataset(name, layout)
        else:
            where = [(str(secret), 0, values.nbytes)]
            file.create_dataset(name, values.shape, "f4", external=where)
    message = f"dataset {name}: must be a dataset that is stored in the file itself"
    (fault,) = validate(path)
    assert fault.startswith(f"{path}: {message}")
    with pytest.raises(StoreError, match=message):
        open_store(path)


def test_hostile_type_that_crashes_hdf5_is_rejected(write_store: Write):
    path = write_store()
    content = bytearray(path.read_bytes())
    # Change the class of a text attribute's type to one that the library does not know.
    offset = content.index(b"regime\0\0\x19\x01") + len(b"regime\0\0\x19")
    content[offset] = 127
    path.write_bytes(content)
    (fault,) = validate(path)
    assert fault.startswith(f"{path}: damaged HDF5 file; reading it crashes")
    with pytest.raises(StoreError, match=re.escape(fault)):
        open_store(path)


def test_hostile_replacement_of_an_opened_file_is_rejected(write_store: Write):
    path = write_store()
    open_store(path).close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(StoreError, match="not a complete HDF5 file"):
        open_store(path)
    write_store()
    open_store(path).close()


def test_failing_check_is_reported_and_leaves_no_process(tmp_path: Path):
    def out_of_memory(_: Path) -> list[str]:
        raise MemoryError("no room")

    before = psutil.Process().children()
    with pytest.raises(MachineError, match=r"x: could not be checked \(MemoryError no room\)"):
        in_child(out_of_memory, [Path("x")])
    assert psutil.Process().children() == before


def test_files_after_one_that_crashes_are_checked() -> None:
    def look(path: Path) -> list[str]:
        if path.name.startswith("bad"):
            os.kill(os.getpid(), signal.SIGSEGV)
        return [] if path.name == "good" else [f"{path}: odd\nname"]

    names = ("bad 1", "good", "odd", "bad 2", "bad 3", "good")
    crashes = ": damaged HDF5 file; reading it crashes (SIGSEGV)."
    assert in_child(look, [Path(name) for name in names]) == [
        [f"bad 1{crashes}"],
        [],
        ["odd: odd\nname"],
        [f"bad 2{crashes}"],
        [f"bad 3{crashes}"],
        [],
    ]


def test_a_file_is_not_blamed_for_an_earlier_one() -> None:
    before: list[str] = []

    def look(path: Path) -> list[str]:
        if "spoils its process" in before:
            os.kill(os.getpid(), signal.SIGSEGV)
        before.append(path.name)
        return []

    names = ("sound", "spoils its process", "sound", "sound")
    assert in_child(look, [Path(name) for name in names]) == [[], [], [], []]


def test_stores_are_checked_together_and_each_reports_its_own_fault(
    write_store: Write, tmp_path: Path
) -> None:
    sound = write_store()
    cut, absent = tmp_path / "cut.h5", tmp_path / "absent.h5"
    cut.write_bytes(sound.read_bytes()[:100])
    check_stores([cut, sound, absent])
    open_store(sound).close()
    for path, rule in ((cut, "not a complete HDF5 file"), (absent, "no such file")):
        with pytest.raises(StoreError, match=f"{path.name}: {rule}"):
            open_store(path)
    for path in (cut, absent):
        path.write_bytes(sound.read_bytes())
        open_store(path).close()


def test_checked_stores_are_opened_without_another_process(
    write_store: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_store()
    check_stores([path, path])
    monkeypatch.delattr(os, "fork")
    check_stores([path])
    open_store(path).close()


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=6),
    kept=st.just(1.0) | st.floats(0, 1),
    dump=st.sampled_from(["statistics", "topk", "full"]),
)
# A text attribute with an encoding that does not exist, for which h5py raises TypeError.
@example(flips=[(0.01, 2)], kept=1.0, dump="full")
@pytest.mark.slow
def test_hostile_damage_is_accepted_or_rejected_by_name(
    write_store: Write, flips: list[tuple[float, int]], kept: float, dump: str
):
    path = write_store(dump=dump)
    content = np.frombuffer(path.read_bytes(), np.uint8).copy()
    used = np.flatnonzero(content)  # a new file is mostly zeros
    for fraction, change in flips:
        content[used[int(fraction * len(used))]] ^= change
    path.write_bytes(content[: round(kept * len(content))].tobytes())
    faults = validate(path)
    for fault in faults:
        assert str(path) in fault
        assert "\n" not in fault
    with suppress(StoreError), open_store(path) as store:
        assert faults or store.n_sentence == 7

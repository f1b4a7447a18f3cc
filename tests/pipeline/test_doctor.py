"""The doctor finds each kind of fault, says what to do, and touches nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pipeline import doctor
from pipeline.doctor import Finding, examine
from tests.conftest import copy_repository


def _levels(findings: list[Finding]) -> dict[str, str]:
    return {one.subject: one.level for one in findings}


def test_this_machine_has_no_fault_beside_its_installation(tmp_path: Path) -> None:
    findings = list(examine(tmp_path / "not yet there"))
    faults = {one.subject for one in findings if one.level == "fault"}
    assert faults <= {"packages"}  # a checkout may be used without being installed
    assert not (tmp_path / "not yet there").exists()
    assert all(one.advice for one in findings if one.level == "fault")


@pytest.mark.parametrize(
    ("found", "level", "what"),
    [
        ("1.0", "ok", "1 as they were tested"),
        ("2.0", "note", "2.0 where 1.0 was tested"),
        (None, "fault", "not installed where 1.0 was tested"),
    ],
)
def test_packages_against_their_pins(
    monkeypatch: pytest.MonkeyPatch, found: str | None, level: str, what: str
) -> None:
    pins = ["thing==1.0", 'other==3.1; extra == "train"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: pins)
    monkeypatch.setattr(doctor, "_version", lambda name: found if name == "thing" else None)
    base, extra = list(doctor._packages())
    assert (base.level, base.what) == (level, what)
    assert (extra.subject, extra.level) == ("packages (train)", "note")


def test_a_damaged_mlflow_store_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    path.write_bytes(b"not a database, though long enough to be taken for one" * 40)
    assert doctor._tracking_store(path).level == "fault"


def test_an_mlflow_store_is_counted_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as store:
        store.execute("CREATE TABLE runs (run_uuid TEXT)")
        store.execute("INSERT INTO runs VALUES ('a')")
    store.close()
    before = path.read_bytes()
    assert "1 runs" in doctor._tracking_store(path).what
    assert path.read_bytes() == before


def test_a_lock_file_that_dvc_cannot_read_says_what_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    copy_repository(copy, "fault", "")
    (copy / ".dvc" / "tmp").mkdir()
    (copy / ".dvc" / "tmp" / "rwlock").touch()
    monkeypatch.setattr(doctor, "ROOT", copy)
    fault = next(one for one in examine(tmp_path) if one.subject == "DVC")
    assert (fault.level, "rwlock" in fault.what) == ("fault", True)
    assert fault.advice == "rm .dvc/tmp/rwlock, when no dvc runs"


def test_a_full_disk_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 2**20}))
    assert doctor._disk(tmp_path).level == "fault"


def test_a_missing_program_says_which_package_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert all("apt-get install" in one.advice for one in doctor._programs())


def test_exit_code_tells_of_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["doctor"])
    assert doctor.main(lambda _: iter([Finding("ok", "python", "3.11")])) == 0
    assert doctor.main(lambda _: iter([Finding("fault", "disk", "full", "free some")])) == 1
    assert "fault  disk: full -> free some" in capsys.readouterr().out

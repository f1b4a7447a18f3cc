"""The doctor reports each kind of fault with advice and changes nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pipeline import doctor
from pipeline.doctor import Finding, examine
from tests.conftest import copy_repository

pytestmark = pytest.mark.slow


def test_this_machine_has_no_fault_except_its_installation(tmp_path: Path) -> None:
    findings = list(examine(tmp_path / "absent"))
    faults = [finding for finding in findings if finding.level == "fault"]
    assert {fault.subject for fault in faults} <= {"packages"}  # the checkout is not installed
    assert not (tmp_path / "absent").exists()
    assert all(fault.advice for fault in faults)


@pytest.mark.parametrize(
    ("installed", "level", "what"),
    [
        ("1.0", "ok", "1 in the tested versions"),
        ("2.0", "note", "2.0; 1.0 was tested"),
        (None, "fault", "not installed; 1.0 was tested"),
    ],
)
def test_packages_are_compared_with_their_pins(
    monkeypatch: pytest.MonkeyPatch, installed: str | None, level: str, what: str
) -> None:
    pins = ["thing==1.0", 'other==3.1; extra == "train"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: pins)
    monkeypatch.setattr(doctor, "_version", lambda name: installed if name == "thing" else None)
    base, extra = list(doctor._packages())
    assert (base.level, base.what) == (level, what)
    assert (extra.subject, extra.level) == ("packages (train)", "note")


def test_an_extra_is_not_expected_because_of_a_package_of_another_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extras = {"train": ("torch", "fairseq"), "transformers": ("torch", "a", "b", "c")}
    pins = [f'{name}==1.0; extra == "{extra}"' for extra, names in extras.items() for name in names]
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: pins)
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in "bc" else "1.0")
    train, transformers = doctor._packages()
    assert (train.level, transformers.level) == ("ok", "note")
    assert transformers.advice == "pip install 'sequence-uncertainty[transformers]'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("raise OSError('libc10_cuda.so: no such file')", "reinstall it"),
        ("raise OSError('torchaudio needs libc10_cuda.so')", "pip uninstall torchaudio"),
        ("", ""),
    ],
)
def test_packages_that_cannot_be_imported_are_faults(
    text: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compiled_package.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(doctor, "_IMPORTED", ("compiled_package", "not_installed"))
    (finding,) = doctor._imports()
    assert finding.subject == "import compiled_package"
    assert finding.level == ("fault" if text else "ok")
    assert finding.advice.startswith(advice)
    if text:
        assert "libc10_cuda.so" in finding.what


@pytest.mark.parametrize("reason", ["wheel", "without DVC"])
def test_dvc_is_examined_only_where_it_runs(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "IS_CHECKOUT", reason != "wheel")
    monkeypatch.setattr(doctor, "is_installed", lambda name: reason == "wheel" or name != "dvc")
    assert list(doctor._dvc()) == []


def test_a_damaged_mlflow_store_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    path.write_bytes(b"not a database, though long enough to be taken for one" * 40)
    assert doctor._tracking_store(path).level == "fault"


def test_runs_of_an_mlflow_store_are_counted_and_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as store:
        store.execute("CREATE TABLE runs (run_uuid TEXT)")
        store.execute("INSERT INTO runs VALUES ('a')")
    store.close()
    before = path.read_bytes()
    assert "1 runs" in doctor._tracking_store(path).what
    assert path.read_bytes() == before


def test_an_unreadable_lock_file_of_dvc_is_named_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    copy_repository(copy, "fault", "")
    (copy / ".dvc" / "tmp").mkdir()
    (copy / ".dvc" / "tmp" / "rwlock").touch()
    monkeypatch.setattr(doctor, "ROOT", copy)
    fault = next(doctor._dvc())
    assert (fault.level, "rwlock" in fault.what) == ("fault", True)
    assert fault.advice == "rm .dvc/tmp/rwlock while no dvc command runs"


def test_a_full_disk_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 2**20}))
    assert doctor._disk(tmp_path).level == "fault"


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert all("apt-get install" in finding.advice for finding in doctor._programs())


def test_exit_code_is_1_if_there_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["doctor"])
    assert doctor.main(lambda _: iter([Finding("ok", "python", "3.11")])) == 0
    assert doctor.main(lambda _: iter([Finding("fault", "disk", "full", "free some")])) == 1
    assert "fault  disk: full -> free some" in capsys.readouterr().out

"""Artifacts and folders of parts: what manifests list, readers refuse and reruns resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.run.artifacts import (
    Artifact,
    PartFolder,
    is_complete,
    made_once,
    new_artifact,
    write_manifest,
)
from pipeline.run.settings import ROOT
from tests.artifacts import made_by

MADE_FROM = {"a": "1", "b": "2"}
KEYS = {"stage", "code", "settings", "made_from", "digest", "files", "parts", "description"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "metrics" / "nmt_ende"
    (folder / "figures").mkdir(parents=True)
    for name in ("cells.csv", "figures/bleu.csv"):
        (folder / name).write_text(name)
    write_manifest(folder, made_by("metrics", **MADE_FROM), description={"counts": 2})
    return folder


def _metrics(folder: Path) -> Artifact:
    return Artifact(folder, "metrics")


def test_all_manifests_have_the_same_keys(folder: Path, tmp_path: Path) -> None:
    parts = _part_folder(tmp_path / "train", a="1")
    _make(parts, "a")
    parts.write_manifest()
    for artifact in (folder, parts.root, parts.root / "a"):
        assert json.loads((artifact / "manifest.json").read_text()).keys() == KEYS


def test_an_artifact_gives_its_files_and_description(folder: Path) -> None:
    (folder / "notes.txt").write_text("of the user's own")
    artifact = _metrics(folder)
    artifact.check(MADE_FROM)
    artifact.check({"a": "1"})
    assert artifact.file("cells.csv") == folder / "cells.csv"
    assert artifact.names() == ["cells.csv", "figures/bleu.csv"]
    assert artifact.names("figures/", ".csv") == ["figures/bleu.csv"]
    assert artifact.names(suffix=".svg") == []
    assert artifact.description == {"counts": 2}
    assert artifact.digest == made_by("metrics", **MADE_FROM).digest
    assert artifact.as_input == {"metrics/nmt_ende": artifact.digest}


@pytest.mark.parametrize("name", ["cells.csv", "figures/bleu.csv"])
def test_a_changed_or_missing_file_is_named(name: str, folder: Path) -> None:
    (folder / name).write_text("other")
    changed = rf"{name}: changed since stage metrics wrote it \(5 bytes, sha256 .*, expected .*\)"
    with pytest.raises(DataError, match=rf"{changed}\. Run python -m stages\.metrics again\."):
        _metrics(folder).check()
    with pytest.raises(DataError, match=changed):
        _metrics(folder).file(name)
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"{name}: no such file\. Run python"):
        _metrics(folder).check()


def test_an_unlisted_file_is_refused(folder: Path) -> None:
    (folder / "draws.parquet").write_text("of another run")
    with pytest.raises(DataError, match=r"draws\.parquet: not listed in manifest\.json"):
        _metrics(folder).file("draws.parquet")


@pytest.mark.parametrize(("name", "digest"), [("b", "3"), ("c", "1")])
def test_input_that_has_changed_is_named(name: str, digest: str, folder: Path) -> None:
    outdated = rf"nmt_ende: not made from the current {name}\. Run python -m stages\.metrics again"
    with pytest.raises(DataError, match=outdated):
        _metrics(folder).check(MADE_FROM | {name: digest})


def test_folder_without_a_manifest_is_accepted_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "manifest.json").unlink()
    artifact = Artifact(folder, "metrics", required=False)
    assert "manifest.json: no such file, so the content of its folder is not" in caplog.text
    artifact.check({"a": "other"})
    assert artifact.names(suffix=".csv") == ["cells.csv", "figures/bleu.csv"]
    assert artifact.file("cells.csv") == folder / "cells.csv"
    assert (artifact.digest, artifact.description, artifact.as_input) == (None, {}, {})
    with pytest.raises(DataError, match=r"draws\.parquet: no such file"):
        artifact.file("draws.parquet")


def test_missing_manifest_names_the_stage_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file\. Run python -m stages\.train first"):
        Artifact(tmp_path / "train" / "nmt_ende", "train")


@pytest.mark.parametrize("text", ["{", "[" * 200_000, "[]"])
def test_a_damaged_manifest_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json: damaged JSON"):
        Artifact(tmp_path, "train")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"digest": "1"}, "digest does not match"),
        ({"settings": "other"}, "digest does not match"),
        ({"parts": {"a": "1"}}, "digest does not match"),
        ({"files": []}, "no attribute"),
        ({"files": {"cells.csv": {"bytes": 9}}}, "without bytes and sha256"),
        ({"description": "text"}, "dictionary update sequence"),
    ],
)
def test_an_edited_manifest_is_refused(
    changes: dict[str, object], reason: str, folder: Path
) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(DataError, match=rf"json: not a manifest of stage metrics \(.*{reason}"):
        _metrics(folder)


@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_manifest_without_a_key_is_refused(key: str, folder: Path) -> None:
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    del content[key]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="not a manifest of stage metrics"):
        _metrics(folder)


def test_the_folder_of_another_stage_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match=r"not a manifest of stage train \(written by stage metr"):
        Artifact(folder, "train")


def test_a_folder_built_in_place_is_complete_with_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "headline.json").write_text("{}")
    assert not is_complete(tmp_path, made_by("sweep"))
    write_manifest(tmp_path, made_by("sweep"), ["headline.json"])
    assert is_complete(tmp_path, made_by("sweep"))
    assert not is_complete(tmp_path, made_by("sweep", decode="1"))


def test_a_new_artifact_replaces_the_old_one_and_lists_its_files(folder: Path) -> None:
    with new_artifact(folder, made_by("metrics")) as out:
        (out / "cells.csv").write_text("new")
    assert _metrics(folder).names() == ["cells.csv"]
    assert sorted(path.name for path in folder.iterdir()) == ["cells.csv", "manifest.json"]


def test_a_new_artifact_keeps_and_logs_the_files_of_the_user(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    (folder / "figures" / "notes.txt").write_text("mine")
    (folder / "link").symlink_to("figures/notes.txt")
    (folder / ".cells.csv.7").write_text("left by a kill")
    with new_artifact(folder, made_by("metrics")) as out:
        (out / "cells.csv").write_text("new")
    assert (folder / "link").readlink() == Path("figures/notes.txt")
    assert (folder / "link").read_text() == "mine"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["cells.csv", "figures", "link", "manifest.json"]
    assert [path.name for path in (folder / "figures").iterdir()] == ["notes.txt"]
    artifact = _metrics(folder)
    artifact.check()
    assert artifact.names() == ["cells.csv"]
    kept = f"{folder}: kept 2 files that no stage made (figures/notes.txt, link)"
    assert caplog.messages == [kept]


def test_made_once_rebuilds_only_a_damaged_artifact(tmp_path: Path) -> None:
    calls: list[Path] = []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "weights").write_text("w")

    for _ in range(2):
        artifact = made_once(tmp_path / "w", made_by("decode"), make)
    assert len(calls) == 1
    artifact.file("weights").write_text("x")
    assert made_once(tmp_path / "w", made_by("decode"), make).file("weights").read_text() == "w"
    assert len(calls) == 2


KILLED_HALFWAY = """
import os, signal, sys
from pathlib import Path
from pipeline.run.artifacts import made_once
from tests.artifacts import made_by

def write_half(folder):
    (folder / "weights").write_bytes(b"ha")
    os.kill(os.getpid(), signal.SIGKILL)

made_once(Path(sys.argv[1]), made_by("decode"), write_half)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_that_looks_complete(tmp_path: Path) -> None:
    folder = tmp_path / "key"
    command = [sys.executable, "-c", KILLED_HALFWAY, str(folder)]
    process = subprocess.run(command, cwd=ROOT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert not folder.exists()

    def make(folder: Path) -> None:
        (folder / "weights").write_bytes(b"complete")

    artifact = made_once(folder, made_by("decode"), make)
    assert artifact.names() == ["weights"]
    assert artifact.file("weights").read_bytes() == b"complete"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def _part_folder(root: Path, beside: dict[str, object] | None = None, **digests: str) -> PartFolder:
    parts = {name: made_by("train", value) for name, value in digests.items()}
    return PartFolder(root, "train", parts, beside or {})


def _make(folder: PartFolder, name: str, text: str = "x") -> None:
    with folder.building(name) as out:
        (out / "data").write_text(text)


def _parts(root: Path) -> dict[str, str]:
    return Artifact(root, "train").parts()


def test_a_part_is_complete_or_absent(tmp_path: Path) -> None:
    folder = _part_folder(tmp_path / "parts", a="1")
    with pytest.raises(KeyboardInterrupt), folder.building("a") as out:
        (out / "data").write_text("half")
        raise KeyboardInterrupt
    assert folder.missing() == ["a"]
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_finished_part_is_recognised_by_its_digest(tmp_path: Path) -> None:
    _make(_part_folder(tmp_path, a="1", b="1"), "a")
    assert _part_folder(tmp_path, a="1", b="1").missing() == ["b"]
    assert _part_folder(tmp_path, a="2").missing() == ["a"]


def test_files_of_parts_are_not_hashed(tmp_path: Path) -> None:
    _make(_part_folder(tmp_path, a="1"), "a")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert manifest["files"] == {"data": {"bytes": 1, "sha256": None}}


def _cut(part: Path) -> None:
    (part / "data").write_text("")


def _delete(part: Path) -> None:
    (part / "data").unlink()


def _damage_manifest(part: Path) -> None:
    (part / "manifest.json").write_text("{")


@pytest.mark.parametrize("damage", [_cut, _delete, _damage_manifest])
def test_a_damaged_part_is_made_again(damage: Callable[[Path], None], tmp_path: Path) -> None:
    folder = _part_folder(tmp_path, a="1", b="1")
    for name in folder.parts:
        _make(folder, name)
    folder.write_manifest()
    damage(folder.root / "b")
    assert folder.missing() == ["b"]
    refused = r"parts are missing, damaged or not in manifest\.json \(b\)\. Run python -m stages\.t"
    with pytest.raises(DataError, match=refused):
        _parts(folder.root)


def test_parts_of_different_settings_are_refused(tmp_path: Path) -> None:
    old, new = (_part_folder(tmp_path, a=text, b=text) for text in ("old", "new"))
    for name in "ab":
        _make(old, name)
    old.write_manifest()
    _make(new, "a")
    with pytest.raises(DataError, match=r"missing, damaged or not in manifest\.json \(a\)"):
        _parts(tmp_path)


def test_a_part_that_the_manifest_does_not_list_is_refused(tmp_path: Path) -> None:
    folder = _part_folder(tmp_path, a="1", b="1")
    for name in "ab":
        _make(folder, name)
    _part_folder(tmp_path, a="1").write_manifest()
    assert _parts(tmp_path) == _part_folder(tmp_path, a="1").parts
    (tmp_path / ".c.building").mkdir()  # from a run that has not finished
    (tmp_path / ".c.building" / "manifest.json").touch()
    _make(folder, "b")
    with pytest.raises(DataError, match=r"not in manifest\.json \(b\)"):
        _parts(tmp_path)
    folder.write_manifest()
    assert _parts(tmp_path) == folder.parts


def test_files_left_by_a_killed_run_are_replaced(tmp_path: Path) -> None:
    folder = _part_folder(tmp_path, a="1")
    (tmp_path / ".a.building").mkdir()
    (tmp_path / ".a.building" / "old").write_text("left by a kill")
    _make(folder, "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["data", "manifest.json"]


def test_what_an_older_run_made_is_deleted_when_the_manifest_is_written(tmp_path: Path) -> None:
    old = _part_folder(tmp_path, {"vocabulary.json": []}, dropped="1")
    _make(old, "dropped")
    old.write_manifest()
    folder = _part_folder(tmp_path, {"ensemble.json": []}, a="1")
    with pytest.raises(DataError, match=r"parts are missing \(a\)"):
        folder.write_manifest()
    _make(folder, "a")
    (tmp_path / ".manifest.json.7").write_text("left by a kill")
    folder.write_manifest()
    assert _parts(tmp_path) == folder.parts
    names = ["a", "ensemble.json", "manifest.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert Artifact(tmp_path, "train").file("ensemble.json").read_text() == "[]\n"


def test_files_of_the_user_among_parts_are_kept_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    _make(_part_folder(tmp_path, a="1", dropped="1"), "a")
    _make(_part_folder(tmp_path, a="1", dropped="1"), "dropped")
    _part_folder(tmp_path, a="1", dropped="1").write_manifest()
    own = ("a/notes.txt", "dropped/notes.txt", "mine.txt", "plots/x.svg")
    (tmp_path / "plots").mkdir()
    for name in own:
        (tmp_path / name).write_text(name)
    folder = _part_folder(tmp_path, a="2")
    _make(folder, "a")
    folder.write_manifest()
    assert [(tmp_path / name).read_text() for name in own] == list(own)
    assert not (tmp_path / "dropped" / "data").exists()
    assert _parts(tmp_path) == folder.parts
    kept = [text for text in caplog.messages if "that no stage made" in text]
    assert kept == [
        f"{tmp_path / 'a'}: kept 1 files that no stage made (notes.txt)",
        f"{tmp_path}: kept 3 files that no stage made (dropped/notes.txt, mine.txt, plots)",
    ]


def test_a_reader_finds_a_manifest_while_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _part_folder(tmp_path, {"ensemble.json": []}, a="1")
    _make(folder, "a")
    folder.write_manifest()
    _make(_part_folder(tmp_path, unexpected="1"), "unexpected")
    present = []
    monkeypatch.setattr(
        "pipeline.run.artifacts.write_json",
        lambda *_: present.append(sorted(path.name for path in tmp_path.iterdir())),
    )
    folder.write_manifest()
    assert present == [["a", "ensemble.json", "manifest.json"]] * 2


def test_the_digest_of_a_folder_depends_on_its_parts(tmp_path: Path) -> None:
    digests = []
    for value in ("1", "2", "1"):
        folder = _part_folder(tmp_path, a=value)
        _make(folder, "a")
        folder.write_manifest()
        digests.append(Artifact(tmp_path, "train").digest)
    assert digests[0] == digests[2] != digests[1]

"""Folders of parts: whole or absent, remade when what went in changes, rid of strangers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.parts import PartFolder, digest, read_manifest, whole_folder


def _make(folder: PartFolder, name: str, text: str = "x") -> None:
    with folder.building(name) as out:
        (out / "data").write_text(text)


def test_a_part_is_whole_or_absent(tmp_path: Path) -> None:
    folder = PartFolder(tmp_path / "parts", {"a": "1"})
    with pytest.raises(KeyboardInterrupt), folder.building("a") as out:
        (out / "data").write_text("half")
        raise KeyboardInterrupt
    assert folder.missing() == ["a"]
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_finished_part_is_known_by_its_digest(tmp_path: Path) -> None:
    _make(PartFolder(tmp_path, {"a": "1", "b": "1"}), "a")
    assert PartFolder(tmp_path, {"a": "1", "b": "1"}).missing() == ["b"]
    assert PartFolder(tmp_path, {"a": "2"}).missing() == ["a"]


def test_what_a_kill_leaves_is_replaced(tmp_path: Path) -> None:
    folder = PartFolder(tmp_path, {"a": "1"})
    (tmp_path / ".a.building").mkdir()
    (tmp_path / ".a.building" / "old").write_text("left by a kill")
    _make(folder, "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["data", "part.json"]


def test_manifest_deletes_strangers_and_lists_the_rest(tmp_path: Path) -> None:
    _make(PartFolder(tmp_path, {"dropped": "1"}), "dropped")
    folder = PartFolder(tmp_path, {"a": "1"})
    with pytest.raises(DataError, match="missing a"):
        folder.write_manifest()
    _make(folder, "a")
    folder.write_manifest()
    assert read_manifest(tmp_path) == {"a": "1"}
    assert not (tmp_path / "dropped").exists()


def test_no_manifest_is_an_error_that_names_the_stage(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"python -m stages\.train first"):
        read_manifest(tmp_path / "train" / "nmt_ende")


def test_whole_folder_replaces_the_old_one(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with whole_folder(tmp_path / "out") as out:
            (out / text).write_text(text)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new"]


def test_digest_depends_on_values_not_on_key_order() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(1) != digest(2) != digest("2")

"""Folders of parts: whole or absent, remade when what went in changes, rid of strangers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.run.artifacts import PartFolder, read_manifest


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


def _cut(part: Path) -> None:
    (part / "data").write_text("")


def _lose(part: Path) -> None:
    (part / "data").unlink()


def _spoil(part: Path) -> None:
    (part / "part.json").write_text("{")


@pytest.mark.parametrize("damage", [_cut, _lose, _spoil])
def test_a_damaged_part_is_made_again(damage: Callable[[Path], None], tmp_path: Path) -> None:
    folder = PartFolder(tmp_path / "train" / "task", {"a": "1", "b": "1"})
    for name in folder.parts:
        _make(folder, name)
    folder.write_manifest()
    damage(folder.root / "b")
    assert folder.missing() == ["b"]
    with pytest.raises(DataError, match=r"damaged ones for b: run python -m stages\.train again"):
        read_manifest(folder.root)


def test_parts_of_two_settings_are_not_read_together(tmp_path: Path) -> None:
    for digests in ({"a": "old", "b": "old"}, {"a": "new", "b": "new"}):
        folder = PartFolder(tmp_path, digests)
        _make(folder, "a")
        if digests["b"] == "old":
            _make(folder, "b")
            folder.write_manifest()
    with pytest.raises(DataError, match=r"must hold the parts of its manifest, got .* for a"):
        read_manifest(tmp_path)


def test_a_manifest_that_leaves_a_part_out_is_refused(tmp_path: Path) -> None:
    folder = PartFolder(tmp_path, {"a": "1", "b": "1"})
    for name in "ab":
        _make(folder, name)
    folder.write_manifest()
    (tmp_path / ".c.building").mkdir()  # of a run that goes on
    (tmp_path / ".c.building" / "part.json").touch()
    assert read_manifest(tmp_path) == folder.parts
    (tmp_path / "manifest.json").write_text('{"a": "1"}')
    with pytest.raises(DataError, match="got others or damaged ones for b: run python -m"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("text", ["{", "[" * 200_000])
def test_a_damaged_manifest_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json: damaged JSON"):
        read_manifest(tmp_path)


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
    (tmp_path / ".manifest.json.7").write_text("left by a kill")
    folder.write_manifest()
    assert read_manifest(tmp_path) == {"a": "1"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "manifest.json"]


def test_a_reader_finds_a_manifest_while_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = PartFolder(tmp_path, {"a": "1"}, beside=["ensemble.json"])
    _make(folder, "a")
    folder.write_manifest()
    for name in ("ensemble.json", "stranger"):
        (tmp_path / name).touch()
    there = []
    monkeypatch.setattr(
        "pipeline.run.artifacts.write_json",
        lambda *_: there.append(sorted(path.name for path in tmp_path.iterdir())),
    )
    folder.write_manifest()
    assert there == [["a", "ensemble.json", "manifest.json"]]


def test_no_manifest_is_an_error_that_names_the_stage(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file\. Run python -m stages\.train first"):
        read_manifest(tmp_path / "train" / "nmt_ende")

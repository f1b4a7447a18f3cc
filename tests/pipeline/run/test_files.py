"""Files and folders are complete or absent; digests depend on values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.run.files import complete_folder, digest, write_atomically


def test_complete_folder_replaces_the_old_one(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with complete_folder(tmp_path / "out") as out:
            (out / text).write_text(text)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new"]


@pytest.mark.parametrize("is_folder", [True, False])
def test_target_of_a_link_is_replaced(is_folder: bool, tmp_path: Path) -> None:
    elsewhere = tmp_path / "another disk" / "results"
    elsewhere.parent.mkdir()
    if is_folder:
        elsewhere.mkdir()
    else:
        elsewhere.touch()
    (tmp_path / "out").symlink_to(elsewhere)
    for left_over in ("building", "replaced"):
        (elsewhere.parent / f".results.{left_over}").symlink_to(tmp_path)
    for text in ("old", "new"):
        with complete_folder(tmp_path / "out") as out:
            (out / text).write_text(text)
    assert (tmp_path / "out").is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == ["new"]
    assert [path.name for path in elsewhere.parent.iterdir()] == ["results"]


def test_digest_depends_on_values_not_on_key_order() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(1) != digest(2) != digest("2")


def test_a_folder_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "metrics"
    with complete_folder(target) as out:
        (out / "cells.csv").write_text("old")
    monkeypatch.setattr("shutil.rmtree", _refuse_to_remove(target))
    with complete_folder(target) as out:
        (out / "cells.csv").write_text("new")
    assert [path.name for path in target.iterdir()] == ["cells.csv"]
    assert (target / "cells.csv").read_text() == "new"


def _refuse_to_remove(target: Path) -> Callable[..., None]:
    def removed(folder: Path, ignore_errors: bool = False) -> None:
        assert folder != target, "a kill here would leave a part of it"

    return removed


def test_old_folder_is_put_back_after_a_kill_between_the_renames(tmp_path: Path) -> None:
    target = tmp_path / "metrics"
    (tmp_path / ".metrics.replaced").mkdir()
    (tmp_path / ".metrics.replaced" / "cells.csv").write_text("old")
    with pytest.raises(KeyboardInterrupt), complete_folder(target):
        raise KeyboardInterrupt
    assert (target / "cells.csv").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_is_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    write_atomically(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new\ud800")
    assert path.read_bytes() == b"old\n"
    assert list(tmp_path.iterdir()) == [path]

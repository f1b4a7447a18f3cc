"""A sealed folder: what it says of itself, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.run.artifacts import check_seal, seal, sealed_file

MADE_FROM = {"a": "1", "b": "2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "metrics" / "nmt_ende"
    (folder / "figures").mkdir(parents=True)
    for name in ("cells.csv", "figures/one.csv"):
        (folder / name).write_text(name)
    seal(folder, MADE_FROM)
    return folder


def test_what_is_as_it_was_written_passes(folder: Path) -> None:
    (folder / "notes.txt").write_text("of the user's own")
    check_seal(folder, MADE_FROM)
    check_seal(folder, {"a": "1"})


@pytest.mark.parametrize("name", ["cells.csv", "figures/one.csv"])
def test_a_file_that_is_another_is_named(name: str, folder: Path) -> None:
    (folder / name).write_text("other")
    again = r"must have the sha256 .*, got .*: run python -m stages\.metrics again"
    with pytest.raises(DataError, match=f"{name} {again}"):
        check_seal(folder, MADE_FROM)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} must have .*, got no file: run"):
        check_seal(folder, MADE_FROM)


@pytest.mark.parametrize(("part", "digest"), [("b", "3"), ("c", "1")])
def test_a_decode_that_it_was_not_made_from_is_named(part: str, digest: str, folder: Path) -> None:
    with pytest.raises(DataError, match=f"got older ones or none of {part}: run python -m"):
        check_seal(folder, MADE_FROM | {part: digest})


def test_a_folder_without_a_manifest_is_taken_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "manifest.json").unlink()
    check_seal(folder, {})
    assert "manifest.json is not there" in caplog.text


def test_a_file_alone_is_as_its_manifest_says(folder: Path) -> None:
    assert sealed_file(folder, "cells.csv") == folder / "cells.csv"
    assert sealed_file(folder, "not listed") == folder / "not listed"
    (folder / "cells.csv").write_text("other")
    with pytest.raises(
        DataError, match=r"cells\.csv must have the sha256 that stage metrics wrote"
    ):
        sealed_file(folder, "cells.csv")
    (folder / "manifest.json").unlink()
    assert sealed_file(folder, "cells.csv") == folder / "cells.csv"

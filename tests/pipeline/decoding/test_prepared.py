from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.decoding.inputs import Prepared
from pipeline.errors import DataError
from tests.artifacts import list_files


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    names = ["test/MED.jsonl", "fairseq/dict.en.txt", "fairseq/dict.de.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    list_files(tmp_path, "prepare", {"absent_sets": {"LTO": "no data"}})
    return Prepared(tmp_path, "en", "de")


def test_prepared_files_are_returned(prepared: Prepared) -> None:
    assert prepared.test_set("MED") == prepared.folder / "test" / "MED.jsonl"
    assert [path.name for path in prepared.dictionaries()] == ["dict.en.txt", "dict.de.txt"]
    assert prepared.absent_sets() == {"LTO": "no data"}
    assert prepared.has("test/MED.jsonl")
    assert not prepared.has("dev.jsonl")


def test_a_file_that_changed_is_refused(prepared: Prepared) -> None:
    (prepared.folder / "test" / "MED.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"MED\.jsonl: changed since stage prepare"):
        prepared.test_set("MED")


def test_missing_file_names_the_stage_to_run(prepared: Prepared) -> None:
    with pytest.raises(
        DataError, match=r"L-DE\.jsonl: no such file\. Run python -m stages\.prepare"
    ):
        prepared.test_set("L-DE")
    (prepared.folder / "manifest.json").unlink()
    prepared = replace(prepared)
    with pytest.raises(DataError, match=r"manifest\.json: no such file"):
        prepared.absent_sets()


@pytest.mark.parametrize("content", ["{", "[]", '"files"', "{}", '{"files": []}'])
def test_a_damaged_manifest_is_refused(content: str, prepared: Prepared) -> None:
    (prepared.folder / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"manifest\.json.* [rR]un python -m stages\.prepare"):
        prepared.test_set("MED")

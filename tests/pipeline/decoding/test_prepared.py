from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.decoding.inputs import Prepared
from pipeline.errors import DataError
from pipeline.run.files import file_sha256, write_json


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    names = ["test/MED.jsonl", "fairseq/dict.en.txt", "fairseq/dict.de.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    files = {name: file_sha256(tmp_path / name) for name in names}
    write_json(tmp_path / "manifest.json", {"files": files, "absent_sets": {"LTO": "no data"}})
    return Prepared(tmp_path, "en", "de")


def test_files_are_those_that_were_prepared(prepared: Prepared) -> None:
    assert prepared.test_set("MED") == prepared.folder / "test" / "MED.jsonl"
    assert [path.name for path in prepared.dictionaries()] == ["dict.en.txt", "dict.de.txt"]
    assert prepared.absent_sets() == {"LTO": "no data"}
    assert prepared.has("test/MED.jsonl")
    assert not prepared.has("dev.jsonl")


def test_a_file_that_changed_is_refused(prepared: Prepared) -> None:
    (prepared.folder / "test" / "MED.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"MED\.jsonl must have the sha256 that stage prepare"):
        prepared.test_set("MED")


def test_a_file_that_is_missing_is_named_with_what_to_run(prepared: Prepared) -> None:
    with pytest.raises(DataError, match=r"L-DE\.jsonl must exist: run python -m stages\.prepare"):
        prepared.test_set("L-DE")
    (prepared.folder / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"manifest\.json: no such file"):
        prepared.absent_sets()


@pytest.mark.parametrize("content", ["{", "[]", '"files"', "{}", '{"files": []}'])
def test_a_damaged_manifest_is_refused(content: str, prepared: Prepared) -> None:
    (prepared.folder / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"manifest\.json.* [rR]un python -m stages\.prepare"):
        prepared.test_set("MED")

"""The prepared data are logged as datasets of a run."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.tracking.run import datasets
from tests.artifacts import list_files

FILES = {
    "fairseq/dict.en.txt": "1",
    "fairseq/train.h5": "2",
    "fairseq/valid.h5": "3",
    "test/LTC.jsonl": "4",
    "test/LTC.h5": "5",
    "test/AMI.jsonl": "6",
    "dev.jsonl": "7",
}


def _prepared(folder: Path, **changed: str) -> Path:
    for name, content in (FILES | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    list_files(folder, "prepare")
    return folder


def test_a_dataset_lists_all_files_of_a_test_set(tmp_path: Path) -> None:
    ami, ltc = datasets(_prepared(tmp_path / "asr"), "metrics")
    assert (ltc.dataset.name, ami.dataset.name) == ("asr LTC", "asr AMI")
    assert json.loads(ltc.dataset.source)["files"] == ["test/LTC.h5", "test/LTC.jsonl"]
    assert ltc.tags[0].value == "evaluation"
    changed = datasets(_prepared(tmp_path / "asr", **{"test/LTC.h5": "8"}), "metrics")
    assert changed[1].dataset.digest != ltc.dataset.digest
    assert changed[0].dataset.digest == ami.dataset.digest


def test_stage_train_has_the_training_data(tmp_path: Path) -> None:
    (train,) = datasets(_prepared(tmp_path / "asr"), "train")
    assert train.dataset.name == "asr train"
    assert json.loads(train.dataset.source)["files"] == ["fairseq/train.h5"]
    assert train.tags[0].value == "training"


def test_without_prepared_data_there_are_no_datasets(tmp_path: Path) -> None:
    assert datasets(tmp_path, "metrics") == []

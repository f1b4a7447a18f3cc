from __future__ import annotations

import json
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from pipeline.config import CONF, PipelineConfig, typed
from pipeline.data.evaluation_sets import read_rows
from pipeline.errors import DataError
from pipeline.parts import file_sha256
from stages.prepare import prepare

FILES = {
    "units.model",
    "units.vocab",
    "dev.jsonl",
    *(f"test/{role}.jsonl" for role in ("newstest14", "PRM", "L-FR", "L-DE")),
    *(f"fairseq/dict.{side}.txt" for side in ("en", "de")),
    *(
        f"fairseq/{split}.en-de.{side}.{kind}"
        for split in ("train", "valid")
        for side in ("en", "de")
        for kind in ("bin", "idx")
    ),
}


def _settings(root: Path, packages: Path, *overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        settings = compose(
            "pipeline",
            [
                "data.test_sentences=8",
                "data.dev_sentences=6",
                "data.train_sentences=null",
                "data.near_duplicate_jaccard=1",
                "data.vocabulary_size=100",
                *overrides,
            ],
        )
    settings.io.root, settings.data.packages = str(root), str(packages)
    return typed(settings)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Path:
    root = tmp_path_factory.mktemp("out puts: 日本")
    prepare(_settings(root, help_packages))
    return root / "prepare" / "nmt_ende"


def test_folder_holds_what_the_next_stages_read(prepared: Path) -> None:
    files = {
        path.relative_to(prepared).as_posix() for path in prepared.rglob("*") if path.is_file()
    }
    assert files == FILES | {"manifest.json"}
    assert [path.name for path in prepared.parent.iterdir()] == ["nmt_ende"]


def test_manifest_holds_counts_versions_and_hashes(prepared: Path) -> None:
    manifest = json.loads((prepared / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["files"]) == FILES
    assert all(file_sha256(prepared / name) == one for name, one in manifest["files"].items())
    assert manifest["packages"]["libreoffice-help-de"]["version"] == "1.0"
    assert manifest["licence"] == "MPL-2.0"
    counts = manifest["counts"]
    assert counts["clean_train"]["read"] == counts["clean_train"]["kept"] == 81
    split = counts["split"]
    assert (split["test"], split["dev"]) == (8, 6)
    assert split["train"] + split["train_dropped_held_out_page"] == 81
    assert counts["test_sets"]["newstest14"]["rows"] == 8


def test_sets_are_of_the_same_held_out_sentences(prepared: Path) -> None:
    test, flipped, german = (
        read_rows(prepared / "test" / f"{role}.jsonl") for role in ("newstest14", "L-FR", "L-DE")
    )
    assert [row.reference for row in test] == [row.reference for row in flipped]
    assert [row.source for row in german] == [row.reference for row in test]
    dev = read_rows(prepared / "dev.jsonl")
    assert not {row.source for row in dev} & {row.source for row in test}


def test_a_second_run_gives_the_same_bytes(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    prepare(_settings(tmp_path, help_packages))
    for path in (tmp_path / "prepare" / "nmt_ende").rglob("*"):
        if path.is_file():
            name = path.relative_to(tmp_path / "prepare" / "nmt_ende")
            assert path.read_bytes() == (prepared / name).read_bytes(), name


def test_training_can_be_cut_without_touching_the_sets(
    prepared: Path, help_packages: Path, tmp_path: Path
) -> None:
    prepare(_settings(tmp_path, help_packages, "data.train_sentences=40"))
    folder = tmp_path / "prepare" / "nmt_ende"
    split = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["counts"]["split"]
    assert split["train"] == 40
    assert split["train_dropped_over_train_sentences"] > 0
    sources = [row.source for row in read_rows(folder / "test" / "newstest14.jsonl")]
    assert sources == [row.source for row in read_rows(prepared / "test" / "newstest14.jsonl")]


def test_nothing_left_to_train_on_is_refused_and_leaves_no_folder(
    help_packages: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="the train set of LibreOffice help must hold a sentence"):
        prepare(_settings(tmp_path, help_packages, "data.test_sentences=76"))
    assert not (tmp_path / "prepare").exists()

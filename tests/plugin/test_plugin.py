"""A user adds a trainer, ensemble, search, measure, metric and table without editing a stage."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pipeline.run.settings import ROOT
from pipeline.store import open_store
from tests.faults.small_run import SETTINGS

OVERRIDES = [
    "experiment=fault",
    *SETTINGS,
    "train=mine",
    "train.checkpoint_interval_updates=2",
    "train.keep_checkpoints=2",
    "~report.figures",
    "ensemble=mine",
    "ensemble.seeds=[0,1]",
    "decode=mine",
    "decode.also=[teacher_forcing]",
    "uncertainty=mine",
    "metrics=mine",
    "metrics.resamples=10",
    "report=mine",
]


def _stage(name: str, root: Path, packages: Path) -> None:
    folders = [f"io.root='{root}'", f"data.packages='{packages}'"]
    config_dir = ["--config-dir", "tests/plugin/conf"]
    result = subprocess.run(
        [sys.executable, "-m", f"stages.{name}", *config_dir, *folders, *OVERRIDES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Path:
    root = tmp_path_factory.mktemp("own functions: 日本") / "out puts"
    for stage in ("prepare", "train", "decode", "uncertainty", "metrics", "tables"):
        _stage(stage, root, help_packages)
    return root


def test_added_trainer_and_ensemble_are_used(root: Path) -> None:
    trained = root / "train" / "nmt_ende" / "seed_0"
    assert sorted(path.name for path in trained.glob("update_*")) == [
        "update_00000002.safetensors",
        "update_00000004.safetensors",
    ]
    with open_store(root / "decode" / "nmt_ende" / "mine.prex.help" / "store.h5") as store:
        assert list(store.attributes["members"]) == ["seed_1", "seed_0"]


def test_added_search_keeps_one_hypothesis(root: Path) -> None:
    with open_store(root / "decode" / "nmt_ende" / "mine.prex.help" / "store.h5") as store:
        assert store.n_hypothesis == store.n_sentence == 8


def test_added_measures_are_columns_and_are_evaluated(root: Path) -> None:
    folder = root / "uncertainty" / "nmt_ende" / "mine.prex.help"
    table = pd.read_parquet(folder / "sequence.parquet")
    assert (table["source_words"] > 0).all()
    assert (table["hypothesis_words"] >= 0).all()
    cells = (root / "metrics" / "nmt_ende" / "cells.csv").read_text(encoding="utf-8")
    for name in ("source_words", "hypothesis_words"):
        assert f",{name},prr," in cells
        assert f",{name},roc_auc," in cells


def test_added_metric_is_a_cell(root: Path) -> None:
    with (root / "metrics" / "nmt_ende" / "cells.csv").open(encoding="utf-8", newline="") as file:
        word_counts = [cell for cell in csv.DictReader(file) if cell["metric"] == "word_count"]
    assert {cell["test_set"] for cell in word_counts} >= {"help"}
    assert all(float(cell["value"]) >= 0 for cell in word_counts)


def test_added_measures_and_metrics_are_in_the_tables(root: Path) -> None:
    with (root / "tables" / "results.csv").open(encoding="utf-8", newline="") as file:
        shown = {
            (cell["table"], cell["column"], cell["test_set_name"]) for cell in csv.DictReader(file)
        }
    for name in ("source_words", "hypothesis_words"):
        assert ("beyond:own-measures", name, "help") in shown
    assert ("tab:nmt-bleu-asr-wer", "word_count", "help") in shown


def test_added_table_is_written(root: Path) -> None:
    assert "Mine, of" in (root / "tables" / "tab_mine.md").read_text(encoding="utf-8")

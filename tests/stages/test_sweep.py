"""A sweep decodes once per decode setting, and its points equal runs of the single stages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient

from pipeline.report.names import number_title
from pipeline.report.sweep import Point, draw, summary
from pipeline.run.settings import ROOT
from tests.conftest import CORES_OF_A_STAGE, copy_repository, environment_of_copy

from .trained_members import FEW_SETS, ONE_FIGURE, prepare, train

SMALL = (
    "experiment=laptop",
    *("ensemble.seeds=[1,2]", "decode.batch_sentences=4", "decode.also=[teacher_forcing]"),
    *("decode.parts_per_job=8", "metrics.resamples=20", "uncertainty.beam=2"),
    *FEW_SETS,
    *ONE_FIGURE,
)


def stage(name: str, root: Path, *arguments: str, cores: int = 1) -> str:
    command = [sys.executable, "-m", f"stages.{name}", *arguments, f"io.root='{root}'", *SMALL]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), CORES_OF_A_STAGE: str(cores)}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sweep: 日本")
    prepare(root / "prepare" / "nmt_ende")
    train(root / "train" / "nmt_ende", root / "prepare" / "nmt_ende")
    stage("decode", root, "decode.beam=2")
    stage("sweep", root, "-m", "uncertainty.temperature=1,10", "decode.beam=1,2", cores=2)
    return root


@pytest.fixture(scope="module")
def sweep_folder(root: Path) -> Path:
    return root / "sweep" / "nmt_ende"


def test_summary_has_one_row_per_point_and_the_swept_keys(sweep_folder: Path) -> None:
    frame = pd.read_csv(sweep_folder / "summary.csv")
    points = frame[["uncertainty.temperature", "decode.beam"]].to_numpy().tolist()
    assert points == [[1, 1], [1, 2], [10, 1], [10, 2]]
    numbers = ["bleu", "nll", "roc_auc"]
    assert not frame[numbers].isna().any(axis=None)
    assert frame["folder"].str.startswith("point-").all()
    heading, _, beams, *_ = (sweep_folder / "summary.md").read_text().splitlines()
    assert heading.split()[1::2] == ["`uncertainty.temperature`", "1", "1", "10", "10"]
    assert beams.split()[1::2] == ["`decode.beam`", "1", "2", "1", "2"]
    assert "<svg" in (sweep_folder / "summary.svg").read_text()


def test_one_decode_serves_every_temperature(sweep_folder: Path) -> None:
    assert len(list(sweep_folder.glob("decode-*"))) == 2
    assert len(list(sweep_folder.glob("point-*"))) == 4


def test_store_of_stage_decode_is_reused(root: Path, sweep_folder: Path) -> None:
    store = root / "decode" / "nmt_ende" / "random_init.prex.help" / "store.h5"
    reused = sweep_folder.glob("decode-*/decode/nmt_ende/random_init.prex.help/store.h5")
    assert any(path.samefile(store) for path in reused)


def test_point_has_the_numbers_of_the_single_stages(root: Path, sweep_folder: Path) -> None:
    for name in ("uncertainty", "metrics"):
        stage(name, root, "decode.beam=2", "uncertainty.temperature=10")
    of_stages = (root / "metrics" / "nmt_ende" / "cells.csv").read_bytes()
    points = [path.read_bytes() for path in sweep_folder.glob("point-*/metrics/nmt_ende/cells.csv")]
    assert points.count(of_stages) == 1


def test_finished_point_is_not_computed_again(root: Path, sweep_folder: Path) -> None:
    results = [
        path for kind in ("h5", "parquet", "csv") for path in sweep_folder.glob(f"*/**/*.{kind}")
    ]
    before = {path: path.stat().st_mtime_ns for path in results}
    assert len(before) > 20
    stage("sweep", root, "-m", "uncertainty.temperature=1,10", "decode.beam=1,2")
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_sweep_in_a_read_only_folder_skips_optional_parts_and_writes_to_io_root(
    root: Path, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    copy_repository(code, "laptop", "")
    for path in (code, *(path for path in code.rglob("*") if path.is_dir())):
        path.chmod(0o555)
    results = tmp_path / "results"
    for name in ("prepare", "train"):
        shutil.copytree(root / name, results / name)
    # Root can write everywhere unless it gives up its capabilities.
    without_privileges = (
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    )
    command = [*without_privileges, sys.executable, "-m", "stages.sweep", "-m", "decode.beam=2"]
    command += [f"io.root={results}", "experiment=laptop", "ensemble.seeds=[1,2]"]
    command += [*FEW_SETS, *ONE_FIGURE]
    environment = environment_of_copy() | {"MPLCONFIGDIR": str(tmp_path), "HOME": str(tmp_path)}
    result = subprocess.run(
        command, cwd=code, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert (
        "left out unless set on the command line: ensemble.also, decode.also"
        in result.stdout + result.stderr
    )
    (cells,) = results.glob("sweep/nmt_ende/point-*/metrics/nmt_ende/cells.csv")
    frame = pd.read_csv(cells)
    assert frame["value"].notna().any()
    assert frame["low"].isna().all()
    assert not frame["hypotheses"].isin(["expr"]).any()
    probe = subprocess.run(
        [*without_privileges, "touch", str(code / "new")], capture_output=True, check=False
    )
    assert probe.returncode != 0


def test_mlflow_has_one_parent_and_comparable_children(root: Path) -> None:
    client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("nmt_ende")
    runs = client.search_runs([experiment.experiment_id], "tags.stage = 'sweep'")
    parents = {run.data.tags["mlflow.parentRunId"] for run in runs}
    assert len(parents) in (1, 2)  # another test runs a second sweep
    children = [run for run in runs if run.data.tags["mlflow.parentRunId"] == min(parents)]
    assert len(children) == 4
    assert len({frozenset(run.data.metrics) for run in runs}) == 1
    assert {run.info.run_name for run in children} == {
        f"T={t} B={b}" for t in (1, 10) for b in (1, 2)
    }
    names = {artifact.path for artifact in client.list_artifacts(min(parents))}
    assert {"summary.csv", "summary.md", "summary.svg"} <= names


def test_summary_sorts_points_and_omits_constant_keys() -> None:
    points = [
        Point(number, {"decode.beam": str(beam), "seed": "1"}, {"roc_auc/a": beam / 10})
        for number, beam in ((1, 5), (0, 1))
    ]
    frame = summary(points)
    assert list(frame.columns) == ["decode.beam", "roc_auc/a"]
    assert frame["decode.beam"].tolist() == [1, 5]
    figure = draw(frame)
    assert figure is not None
    assert figure.axes[0].get_title() == number_title("roc_auc/a")


def test_figure_has_intervals_plain_values_and_one_scale_per_metric() -> None:
    points = [
        Point(
            number,
            {"uncertainty.temperature": str(temperature)},
            {"roc_auc/a": 50.0 + number, "roc_auc/b": 90.0, "bleu": 20.0},
            intervals={"roc_auc/a": (40.0, 60.0)},
        )
        for number, temperature in enumerate((1, 2, 10))
    ]
    figure = draw(summary(points))
    assert figure is not None
    a, b, bleu = figure.axes
    assert [label.get_text() for label in a.get_xticklabels()] == ["1", "2", "10"]
    assert a.get_xscale() == "log"
    assert [len(axis.collections) for axis in (a, b, bleu)] == [1, 0, 0]
    assert a.get_ylim() == b.get_ylim() != bleu.get_ylim()


def test_sweep_over_names_has_no_figure() -> None:
    points = [
        Point(n, {"decode": name}, {"bleu": 1.0}) for n, name in enumerate(("beam", "greedy"))
    ]
    assert draw(summary(points)) is None

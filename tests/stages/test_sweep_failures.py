"""A sweep with failed points summarises the others and names the failed ones with reasons."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient
from omegaconf import OmegaConf

from pipeline.errors import PipelineError
from pipeline.report.sweep import Point, draw, failures, summary, write_summary
from pipeline.run.settings import ROOT
from pipeline.sweep import close
from pipeline.tracking import RunLog, Sweep

from .trained_members import FEW_SETS, ONE_FIGURE, prepare_and_train

NUMBER = "help/bleu"


def test_failed_point_has_a_row_with_its_reason(tmp_path: Path) -> None:
    root = tmp_path / "out"
    prepare_and_train(root)
    command = [sys.executable, "-m", "stages.sweep", "-m", "experiment=laptop", f"io.root={root}"]
    command += ["decode.batch_sentences=4", "decode.beam=2", "uncertainty.beam=2"]
    command += [*FEW_SETS, *ONE_FIGURE]
    command += ["ensemble.seeds=[1,9],[1,2]"]  # 9 was not trained
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    sweep_folder = root / "sweep" / "nmt_ende"
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    message = f"error: {sweep_folder / 'summary.csv'}: 1 of 2 points failed: "
    assert result.stderr.splitlines()[-1].startswith(f"{message}ensemble.seeds=[1,9] (")
    failed, done = pd.read_csv(sweep_folder / "summary.csv").to_dict("records")
    assert (failed["ensemble.seeds"], done["ensemble.seeds"]) == ("[1,9]", "[1,2]")
    assert "ensemble.seeds: seed 9 was not trained" in failed["reason"]
    assert pd.isna(done["reason"])
    numbers = [name for name in done if "/" in name]
    assert numbers
    assert all(pd.isna(failed[name]) and not pd.isna(done[name]) for name in numbers)
    assert "seed 9 was not trained" in (sweep_folder / "summary.md").read_text()
    client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
    parent, child = sorted(client.search_runs(["1"]), key=lambda run: len(run.data.metrics))
    assert (parent.info.status, child.info.status) == ("FAILED", "FINISHED")
    downloaded = client.download_artifacts(parent.info.run_id, "summary.csv")
    assert Path(downloaded).read_bytes() == (sweep_folder / "summary.csv").read_bytes()


def job(folder: Path, number: int, *overrides: str) -> Path:
    """Write the files that Hydra writes when it starts a job; return the folder of the job."""
    hydra_folder = folder / str(number) / ".hydra"
    hydra_folder.mkdir(parents=True)
    hydra = {"hydra": {"job": {"num": number}, "overrides": {"task": [*overrides]}}}
    OmegaConf.save(OmegaConf.create(hydra), hydra_folder / "hydra.yaml")
    config = {"io": {"root": str(folder / "out")}, "task": {"name": "nmt_ende"}}
    OmegaConf.save(OmegaConf.create(config), hydra_folder / "config.yaml")
    return hydra_folder.parent


def test_killed_jobs_and_untracked_points_are_reported(tmp_path: Path) -> None:
    for number, beam in enumerate((1, 5, 10)):
        job_folder = job(tmp_path, number, "seed=1", f"decode.beam={beam}")
        if beam > 1:
            point = Point(number, {"seed": "1", "decode.beam": str(beam)}, {NUMBER: beam / 2})
            (job_folder / "point.json").write_text(json.dumps(point.as_dict()))
    (tmp_path / "1" / "failed.txt").write_text("MLflow could not store it")
    message = r"2 of 3 points failed: decode\.beam=1 \(its process .*\); decode\.beam=5 \(MLflow"
    with pytest.raises(PipelineError, match=message):
        close(Sweep(tmp_path, RunLog()))
    frame = pd.read_csv(tmp_path / "out" / "sweep" / "nmt_ende" / "summary.csv")
    assert frame["decode.beam"].tolist() == [1, 5, 10]
    assert frame[NUMBER].fillna(0).tolist() == [0, 2.5, 5]
    assert frame["reason"].notna().tolist() == [True, True, False]


def test_sweep_without_failures_stays_unchanged(tmp_path: Path) -> None:
    job_folder = job(tmp_path, 0, "decode.beam=1")
    (job_folder / "point.json").write_text(json.dumps(Point(0, {}, {NUMBER: 1.0}).as_dict()))
    close(Sweep(tmp_path, RunLog()))
    assert not (tmp_path / "out").exists()


def test_failed_points_are_not_drawn_and_a_reason_fits_one_cell(tmp_path: Path) -> None:
    points = [
        Point(0, {"seed": "1"}, {NUMBER: 1.0}),
        Point(1, {"seed": "2"}, {}, "a|b\nc"),
        Point(2, {"seed": "3"}, {NUMBER: 2.0}),
        Point(3, {"seed": "4"}, {}, "a|b\nc"),
    ]
    frame = summary(points)
    assert list(frame.columns) == ["seed", NUMBER, "reason"]
    figure = draw(frame)
    assert figure is not None
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 3]
    written = write_summary(tmp_path, points)
    assert "4 | | a\\|b c |" in " ".join(written[1].read_text().split())
    assert failures(points) == "seed=2, seed=4 (a|b c)"


def test_sweep_whose_points_all_failed_has_a_summary(tmp_path: Path) -> None:
    points = [Point(number, {"seed": str(number)}, {}, "no data") for number in (0, 1)]
    assert [path.name for path in write_summary(tmp_path, points)] == ["summary.csv", "summary.md"]
    assert pd.read_csv(tmp_path / "summary.csv")["reason"].tolist() == ["no data"] * 2

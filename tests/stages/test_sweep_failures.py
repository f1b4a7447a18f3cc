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

from pipeline.errors import ConfigError, PipelineError
from pipeline.multirun import close
from pipeline.report.sweep import Point, draw, failures, summary, write_summary
from pipeline.run.settings import ROOT
from pipeline.sweep import lean_settings
from pipeline.tracking import RunLog, Sweep

from .trained_members import FEW_SETS, ONE_FIGURE, prepare_and_train, settings

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


@pytest.mark.parametrize("key", ["train.updates", "model", "data/units"])
def test_settings_of_the_members_cannot_be_swept(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.sweep.swept_keys_of_job", lambda: ["decode.beam", key])
    with pytest.raises(ConfigError, match=f"^{key}: cannot be swept by stage sweep"):
        lean_settings(settings(Path()))


def record(multirun: Path, number: int, stage: str = "sweep", **entries: object) -> None:
    """Write the record of a job of a multirun in `multirun`, whose summary lies in out/."""
    path = multirun / "points" / f"{number}.json"
    path.parent.mkdir(exist_ok=True)
    content = {"number": number, "stage": stage, "overrides": {"seed": "1"}, "reason": None}
    content |= {"summary": str(multirun / "out"), "ended": True} | entries
    path.write_text(json.dumps(content))
    (multirun / "out").mkdir(exist_ok=True)


def test_killed_jobs_and_untracked_points_are_reported(tmp_path: Path) -> None:
    beams = [{"seed": "1", "decode.beam": beam} for beam in ("1", "5", "10")]
    record(tmp_path, 0, overrides=beams[0], ended=False)
    untracked = "MLflow could not store it"
    record(tmp_path, 1, overrides=beams[1], numbers={NUMBER: 2.5}, reason=untracked)
    record(tmp_path, 2, overrides=beams[2], numbers={NUMBER: 5.0})
    message = r"2 of 3 points failed: decode\.beam=1 \(its process .*\); decode\.beam=5 \(MLflow"
    with pytest.raises(PipelineError, match=message):
        close(Sweep(tmp_path, RunLog()))
    frame = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert frame["decode.beam"].tolist() == [1, 5, 10]
    assert frame[NUMBER].fillna(0).tolist() == [0, 2.5, 5]
    assert frame["reason"].notna().tolist() == [True, True, False]


def test_summary_of_a_stage_has_its_folders_and_of_metrics_the_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, stage in enumerate(("decode", "metrics")):
        folder = tmp_path / "out" / f"point-{number}"
        (folder / "metrics" / "toy").mkdir(parents=True)
        (folder / "metrics" / "toy" / "numbers.json").write_text('{"bleu": 7.5}')
        record(tmp_path, number, stage, overrides={"seed": str(number)}, folder=str(folder))
    close(Sweep(tmp_path, RunLog()))
    frame = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert frame["bleu"].fillna(0).tolist() == [0, 7.5]
    assert frame["folder"].tolist() == ["point-0", "point-1"]
    assert f"summary of 2 points: {tmp_path / 'out' / 'summary.csv'}" in capsys.readouterr().out
    (tmp_path / "points" / "1.json").unlink()
    close(Sweep(tmp_path, RunLog()))
    assert "point-0" in capsys.readouterr().out


def test_multirun_whose_jobs_have_another_root_has_no_summary(tmp_path: Path) -> None:
    close(Sweep(tmp_path, RunLog()))
    assert [*tmp_path.iterdir()] == []


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
    assert "Failed: seed=2, seed=4 (a\\|b c)." in written[1].read_text()
    assert failures(points) == "seed=2, seed=4 (a|b c)"


def test_sweep_whose_points_all_failed_has_a_summary(tmp_path: Path) -> None:
    points = [Point(number, {"seed": str(number)}, {}, "no data") for number in (0, 1)]
    assert [path.name for path in write_summary(tmp_path, points)] == ["summary.csv", "summary.md"]
    assert pd.read_csv(tmp_path / "summary.csv")["reason"].tolist() == ["no data"] * 2

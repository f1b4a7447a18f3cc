"""A multirun keeps each point in a folder of its own and leaves the results of plain runs alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from omegaconf import OmegaConf

from pipeline.run.points import link
from pipeline.run.settings import ROOT
from pipeline.store import open_store
from tests.stages.test_given_stores import _write
from tests.stages.trained_members import decoded_store, prepare_and_train

pytestmark = pytest.mark.slow


def multirun(folder: Path, stage: str, *arguments: str, code: int = 0) -> str:
    """Run a stage with --multirun in `folder`; return what it prints."""
    command = [sys.executable, "-m", f"stages.{stage}", "-m", "tracking=off", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == code, result.stderr[-3000:]
    return result.stdout if code == 0 else result.stderr


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


PART = "random_init.prex.help"
FEW = ("experiment=laptop", "ensemble.seeds=[1,2]", "decode.batch_sentences=4", "decode.also=[]")


def test_points_of_a_decode_stand_side_by_side_and_reuse_what_is_there(tmp_path: Path) -> None:
    root = tmp_path / "outputs"
    prepare_and_train(root)
    decoded_store(root, PART, "decode.also=[]")  # at beam 2
    plain = files(root / "decode")
    sets = [path.stem for path in (root / "prepare" / "nmt_ende" / "test").glob("*.jsonl")]
    only = [f"~task.test_sets.{name}" for name in sets if name not in ("help",)]
    arguments = ("decode.beam=1,2", *FEW, *only, "hydra.sweep.dir=points")
    arguments += ("hydra.sweep.subdir=${hydra.job.num}",)
    text = multirun(tmp_path, "decode", *arguments)
    assert files(root / "decode") == plain
    stores = [tmp_path / "points" / str(n) / "decode" / "nmt_ende" / PART for n in range(2)]
    for beam, folder in enumerate(stores, start=1):
        with open_store(folder / "store.h5") as store:
            assert store.hypothesis_offset[-1] == 4 * beam
    assert (stores[1] / "store.h5").samefile(root / "decode" / "nmt_ende" / PART / "store.h5")
    assert (tmp_path / "points" / "0" / "train").samefile(root / "train")
    frame = pd.read_csv(tmp_path / "points" / "summary.csv")
    assert frame[["decode.beam", "folder"]].to_numpy().tolist() == [[1, 0], [2, 1]]
    assert text.count("help: 1 store: 5 sentences") == 1  # the other was there
    assert "sentences; wrote" not in text
    assert "summary of 2 points: points/summary.csv" in text

    before = files(tmp_path / "points" / "0" / "decode")
    multirun(tmp_path, "decode", *arguments)
    unchanged = {path for path, time in before.items() if files(path.parent)[path] == time}
    assert {path.name for path in unchanged} >= {"store.h5"}


def test_points_that_a_later_stage_has_linked_get_decodes_of_their_own(tmp_path: Path) -> None:
    root = tmp_path / "outputs"
    prepare_and_train(root)
    decoded_store(root, PART, "decode.also=[]")  # at beam 2
    sets = [path.stem for path in (root / "prepare" / "nmt_ende" / "test").glob("*.jsonl")]
    only = [f"~task.test_sets.{name}" for name in sets if name not in ("help",)]
    arguments = (*FEW, *only, "decode.beam=1", "hydra.sweep.dir=points")
    arguments += ("hydra.sweep.subdir=${hydra.job.num}",)
    points = [tmp_path / "points" / number for number in ("0", "1")]
    for point in points:
        point.mkdir(parents=True)
        link(point, root, "decode")  # as stage uncertainty does
    plain = files(root / "decode")
    multirun(tmp_path, "decode", "uncertainty.temperature=1,2", *arguments)
    assert files(root / "decode") == plain
    for point in points:
        assert not (point / "decode").is_symlink()
        with open_store(point / "decode" / "nmt_ende" / PART / "store.h5") as store:
            assert store.hypothesis_offset[-1] == 4


def test_results_with_other_settings_do_not_pass_for_those_of_a_point(tmp_path: Path) -> None:
    root = tmp_path / "outputs"
    prepare_and_train(root)
    decoded_store(root, PART, "decode.also=[]")
    error = multirun(tmp_path, "uncertainty", "decode.beam=1,3", *FEW, code=1)
    assert "2 of 2 points failed" in error
    assert (
        "(decode.beam: is a setting of stage decode, which has not run on this point. "
        "Run python -m stages.decode with the same overrides first.)" in error
    )


def test_points_lie_below_io_root_and_their_names_tell_what_was_swept(tmp_path: Path) -> None:
    plain = tmp_path / "outputs" / "config" / "nmt_ende" / "resolved.yaml"
    plain.parent.mkdir(parents=True)
    plain.write_text("of a plain run")
    text = multirun(tmp_path, "compose", "seed=1,2")
    assert plain.read_text() == "of a plain run"
    points = tmp_path / "outputs" / "multirun" / "seed"
    for seed in (1, 2):
        composed = points / f"point-seed-{seed}" / "config" / "nmt_ende" / "resolved.yaml"
        assert OmegaConf.load(composed).seed == seed
    assert [line.split()[1::2] for line in text.splitlines()[-3:-1]] == [
        ["1", "point-seed-1"],
        ["2", "point-seed-2"],
    ]


def test_two_points_in_one_folder_are_refused(tmp_path: Path) -> None:
    error = multirun(tmp_path, "compose", "seed=1,2", "hydra.sweep.subdir=same", code=1)
    assert "of 2 points failed: seed=" in error
    assert "(hydra.sweep.subdir: points " in error
    assert "have the same folder" in error


def test_failed_point_is_named_in_the_summary(tmp_path: Path) -> None:
    error = multirun(tmp_path, "compose", "data.min_words=1,-1", code=1)
    assert "1 of 2 points failed: data.min_words=-1 (data.min_words: must be " in error
    frame = pd.read_csv(tmp_path / "outputs" / "multirun" / "data.min_words" / "summary.csv")
    assert frame["reason"].isna().tolist() == [True, False]


def test_a_store_of_a_failed_point_is_named(tmp_path: Path) -> None:
    store = _write(tmp_path / "a.h5")
    arguments = (f"io.store={store},absent.h5", "io.out=out", "metrics.resamples=0")
    error = multirun(tmp_path, "metrics", *arguments, "~report.figures", code=1)
    assert "1 of 2 points failed: io.store=absent.h5 (absent.h5: no such file. " in error
    (path,) = (tmp_path / "outputs" / "multirun").glob("*/summary.csv")
    assert pd.read_csv(path)["io.store"].tolist() == [str(store), "absent.h5"]


def test_swept_folders_are_those_of_the_points_and_lines_say_which_point(tmp_path: Path) -> None:
    store = _write(tmp_path / "a.h5")
    arguments = (f"io.store={store}", "metrics.resamples=0", "~report.figures")
    text = multirun(tmp_path, "metrics", "io.out=one,two", *arguments)
    for name in ("one", "two"):
        assert (tmp_path / name / "metrics" / "toy" / "cells.csv").is_file()
        assert f" INFO out={name}: task toy of the stores" in text
    summary = pd.read_csv(tmp_path / "outputs" / "multirun" / "all" / "summary.csv")
    assert [Path(folder).name for folder in summary["folder"]] == ["one", "two"]


def test_results_that_do_not_exist_are_one_sentence_and_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stages.tables", "io.root=outputs/multirun/seed/point-seed-3"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stderr.startswith("error: io.root: no such folder of results (outputs/multirun/")
    assert result.stderr.count("\n") == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("out", ["out", "out/${hydra:job.num}"])
def test_each_point_has_results_of_its_own_in_io_out(out: str, tmp_path: Path) -> None:
    store = _write(tmp_path / "a.h5")
    arguments = (f"io.store={store}", f"io.out={out}", "~report.figures")
    multirun(tmp_path, "metrics", "metrics.resamples=0,20", *arguments)
    found = sorted((tmp_path / "out").glob("*/metrics/toy/cells.csv"))
    lows = [pd.read_csv(path)["low"].notna().any() for path in found]
    assert sorted(lows) == [False, True]
    if out != "out":
        assert [path.relative_to(tmp_path / "out").parts[0] for path in found] == ["0", "1"]
        return
    (path,) = (tmp_path / "outputs" / "multirun").glob("*/summary.csv")
    summary = pd.read_csv(path)
    points = sorted((path.parent / folder).resolve() for folder in summary["folder"])
    assert points == [path.parents[2] for path in found]
    assert summary["bleu"].notna().all()
    made = files(tmp_path / "out")
    again = multirun(tmp_path, "metrics", "metrics.resamples=0,20", *arguments)
    results = {path: made[path] for path in made if path.suffix in (".csv", ".parquet")}
    assert results.items() <= files(tmp_path / "out").items()
    assert again.count("complete, and not made again") == 4

"""Folders of the points of a multirun: their names, and links to what they build on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pipeline.run.code import input_folders, output_folders, readers_before, resumed_folders
from pipeline.run.points import (
    folder_of_points,
    hard_link,
    is_point,
    label_of_point,
    link,
    own_results,
    point_name,
    short_names,
    unread_keys,
)
from tests.composed_settings import composed_settings


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ([], "point"),
        (["decode.beam=5"], "point-decode.beam-5"),
        (["io.root=a", "tracking=off", "tracking.uri=b", "decode.beam=5"], "point-decode.beam-5"),
        (["seed=1", "+decode.beam=5"], "point-decode.beam-5+seed-1"),
    ],
)
def test_name_of_a_point(overrides: list[str], name: str) -> None:
    assert point_name(overrides) == name
    assert point_name(OmegaConf.create(overrides)) == name


def test_points_have_different_names_that_need_no_quotes() -> None:
    values = ("[1,2]", "[1,3]", "a/x.h5", "b/x.h5", "1+b", "'a b'", "ä", "x" * 200, "x" * 201)
    names = [point_name([f"a={value}"]) for value in values]
    assert len({*names}) == len(values)
    assert all(len(name) < 150 and name.isascii() and not {*" =,'[]/"} & {*name} for name in names)
    assert names[2].startswith("point-a-x.h5-")


def test_names_contain_what_is_swept_and_a_digest_tells_the_rest_apart() -> None:
    swept = ["decode.beam"]
    names = [
        point_name([f"decode.beam={beam}", f"seed={seed}"], swept) for beam in "15" for seed in "12"
    ]
    ones, fives = 2 * ["point-decode.beam-1"], 2 * ["point-decode.beam-5"]
    assert [name[:-9] for name in names] == [*ones, *fives]
    assert len({*names}) == 4
    assert point_name(["decode.beam=5", "io.root=a"], swept) == "point-decode.beam-5"
    overrides = ["decode.beam=5", "seed=1"]
    assert folder_of_points("decode", "nmt_ende", overrides, swept) == "multirun/decode.beam"


def test_lines_of_a_point_begin_with_what_is_swept() -> None:
    overrides = ["decode.beam=5", "seed=1", "uncertainty.temperature=10"]
    swept = ["decode.beam", "uncertainty.temperature"]
    assert label_of_point(overrides, swept) == "B=5 T=10: "
    assert label_of_point(overrides, []) == ""


def test_a_removed_key_is_named_without_a_value() -> None:
    settings = [("decode.beam", "5"), ("~ensemble.also.checkpoint", "")]
    assert short_names(settings) == "B=5 ~checkpoint"


def test_value_in_jobs_only_is_not_resolved() -> None:
    overrides = OmegaConf.create(["io.out=out/${hydra:job.num}", "seed=1"])
    assert point_name(overrides).startswith("point-io.out-")
    assert folder_of_points("metrics", "nmt_ende", overrides) == "multirun/seed"


def test_stages_continue_the_points_of_each_other() -> None:
    folders = {
        folder_of_points(stage, "nmt_ende", ["decode.beam=1,5", "io.root=out"])
        for stage in ("decode", "uncertainty", "metrics")
    }
    assert folders == {"multirun/decode.beam"}
    assert folder_of_points("sweep", "nmt_ende", ["decode.beam=1,5"]) == "sweep/nmt_ende"


def test_inputs_and_resumed_results_are_those_of_dvc_yaml() -> None:
    assert input_folders("decode") == ["prepare", "train"]
    assert input_folders("metrics") == ["prepare", "decode", "uncertainty"]
    assert input_folders("compose") == []
    assert {stage: resumed_folders(stage) for stage in ("train", "decode", "metrics")} == {
        "train": ["train"],
        "decode": ["decode"],
        "metrics": [],
    }
    outputs = {"compose": ["config"], "train": ["train"], "tables": ["tables", "report"]}
    assert {stage: output_folders(stage) for stage in outputs} == outputs


def test_links_are_relative_and_own_results_stay(tmp_path: Path) -> None:
    for name in ("root/prepare", "root/decode", "other/prepare", "point/decode"):
        (tmp_path / name).mkdir(parents=True)
    point = tmp_path / "point"
    assert not is_point(point)
    link(point, tmp_path / "root", "prepare", "decode", "absent")
    assert str((point / "prepare").readlink()) == "../root/prepare"
    assert is_point(point)
    assert not (point / "decode").is_symlink()
    assert not os.path.lexists(point / "absent")
    link(point, tmp_path / "other", "prepare")
    assert (point / "prepare").samefile(tmp_path / "other" / "prepare")


def test_a_stage_writes_into_the_point_and_not_through_its_links(tmp_path: Path) -> None:
    """A stage that ran on the point before may have linked what an earlier stage writes."""
    root, point = tmp_path / "root", tmp_path / "sweep" / "point"
    for name in ("prepare", "decode", "uncertainty", "metrics"):
        (root / name).mkdir(parents=True)
        (root / name / "result").write_text("of a plain run")
    (point / ".hydra").mkdir(parents=True)
    link(point, root, "prepare", "decode", "uncertainty", "metrics")
    own_results("decode", composed_settings(f"io.root='{point}'"))
    assert {path.name for path in point.iterdir()} == {
        *(".hydra", "metrics", "prepare", "uncertainty")
    }
    given = ("io.store=a.h5", f"io.out='{point}'")
    own_results("metrics", composed_settings(f"io.root='{root}'", *given))
    assert {path.name for path in point.iterdir()} == {".hydra", "prepare"}
    assert len([*root.rglob("result")]) == 4


def test_a_link_of_the_user_stays(tmp_path: Path) -> None:
    """Results may be stored on another disk."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "decode").symlink_to(tmp_path / "disk" / "decode")
    (root / "train").symlink_to("../disk/train")
    for stage in ("decode", "train"):
        own_results(stage, composed_settings(f"io.root='{root}'"))
    assert sorted(path.name for path in root.iterdir()) == ["decode", "train"]


def test_resumed_parts_are_hard_links_and_copies_across_file_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a" / "store.h5"
    source.parent.mkdir()
    source.write_text("store")
    (source.parent / ".part.building").mkdir()  # of a run that is still decoding
    hard_link(source.parent, tmp_path / "b")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["store.h5"]
    assert (tmp_path / "b" / "store.h5").samefile(source)

    def other_device(*_: object) -> None:
        raise OSError(errno.EXDEV, "other device")

    monkeypatch.setattr(os, "link", other_device)
    hard_link(source.parent, tmp_path / "c")
    copied = tmp_path / "c" / "store.h5"
    assert copied.read_text() == "store"
    assert not copied.samefile(source)


def test_stages_before_that_read_a_setting_are_found() -> None:
    assert readers_before("tables", "decode.beam") == ["decode"]
    assert readers_before("metrics", "train") == ["train"]
    assert readers_before("metrics", "uncertainty.temperature") == ["uncertainty"]
    assert readers_before("decode", "decode.beam") == []


def test_keys_that_make_no_difference_yet_are_found() -> None:
    keys = ["decode.beam", "seed", "metrics", "experiment", "io.store"]
    assert unread_keys("metrics", keys) == []
    assert unread_keys("decode", keys) == ["metrics"]
    assert unread_keys("compose", ["seed"]) == []
    assert unread_keys("plan", keys) == []

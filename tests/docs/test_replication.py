"""The replication study: its points are valid, and what is checked in is what its commands make."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from docs.replication import report, run
from tests.composed_settings import composed_settings

_CELL = {
    "test_set": "german-source",
    "ensemble": "random_init",
    "hypotheses": "prex",
    "regime": "beam",
    "T": 10,
    "length_norm": True,
    "column": "prex_rmi_s",
    "metric": "roc_auc",
    "low": 70.0,
    "high": 80.0,
    "reason": "",
}


def _overrides(point: run.Point) -> list[str]:
    return [f"{key}={run.value_text(value)}" for key, value in point.settings.items()]


@pytest.mark.parametrize("point", run.points(), ids=lambda point: f"{point.training}.{point.name}")
def test_settings_of_points_are_valid(point: run.Point) -> None:
    settings = composed_settings("experiment=replication", f"task={point.task}", *_overrides(point))
    trained = point.of_training.get("ensemble.seeds", [1, 2, 3, 4])
    assert {*settings.ensemble.seeds} <= {*trained}, "a point needs runs that are not trained"


def test_no_two_points_have_the_same_settings() -> None:
    points = [(point.task, *sorted(_overrides(point))) for point in run.points()]
    assert len({*points}) == len(points)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A study of two points of one training; its stages only write what is read of them."""
    (tmp_path / "study.yaml").write_text(
        "trainings:\n  ende:\n    task: nmt_ende\n    settings: {train.updates: 400}\n"
        "    points:\n      base: {}\n      beam-1: {decode.beam: 1, uncertainty.beam: [1]}\n",
        encoding="utf-8",
    )
    tables = {name: tmp_path / f"{name}.csv" for name in run.TABLES}
    for module in (run, report):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "TABLES", tables)
    monkeypatch.chdir(tmp_path)
    started: list[list[str]] = []

    def stage(command: Sequence[str], *, check: bool) -> None:
        _, _, module, *overrides = command
        started.append([module, *overrides])
        (root,) = (Path(text[len("io.root=") :]) for text in overrides if text[:8] == "io.root=")
        folder = root / module.removeprefix("stages.")
        if folder.name in ("prepare", "train", "tables"):
            folder.mkdir(parents=True, exist_ok=True)
        if folder.name == "metrics":
            (folder / "nmt_ende").mkdir(parents=True)
            cells = [
                _CELL | {"B": 1, "value": 70.0},
                _CELL | {"B": 5, "value": 75.0},
                _CELL | {"B": 5, "value": 60.0, "length_norm": False},
            ]
            pd.DataFrame(cells).to_csv(folder / "nmt_ende" / "cells.csv", index=False)
        if folder.name == "tables":
            claim = {"claim": "rmi_is_best_knowledge_for_ood", "metric": "", "reason": ""}
            claims = [
                claim | {"test_sets": sets, "verdict": verdict, "value": 2.0, "low": 1, "high": 3}
                for sets, verdict in (("help;permuted", "holds"), ("typos", "does not hold"))
            ]
            pd.DataFrame(claims).to_csv(folder / "claims.csv", index=False)

    monkeypatch.setattr(subprocess, "run", stage)
    return started


def test_a_training_is_shared_and_finished_points_are_not_made_again(
    study: list[list[str]], tmp_path: Path
) -> None:
    run.main()
    stages = [module.removeprefix("stages.") for module, *_ in study]
    assert stages == ["prepare", "train", "decode", "uncertainty", "metrics", "tables"] * 2
    roots = [text for command in study for text in command if text.startswith("io.root=")]
    base, beam = "outputs/replication/ende/points/base", "outputs/replication/ende/points/beam-1"
    training = "outputs/replication/ende"
    assert roots == [f"io.root={root}" for root in [training] * 2 + [base] * 4] + [
        f"io.root={root}" for root in [training] * 2 + [beam] * 4
    ]
    assert "decode.beam=1" not in study[7]
    assert {"train.updates=400", "decode.beam=1", "uncertainty.beam=[1]"} <= {*study[8]}
    assert (tmp_path / beam / "train").resolve() == (tmp_path / training / "train").resolve()
    study.clear()
    run.main()
    assert study == []


def test_numbers_are_those_of_all_hypotheses_with_length_normalisation(
    study: list[list[str]], tmp_path: Path
) -> None:
    run.main("ende/*")
    numbers = pd.read_csv(tmp_path / "numbers.csv")
    assert numbers["point"].tolist() == ["base", "beam-1"]
    assert numbers["value"].tolist() == [75.0, 75.0]
    points = pd.read_csv(tmp_path / "points.csv")
    assert points["train.updates"].tolist() == [400, 400]
    assert points["decode_seconds"].notna().all()


def test_a_pattern_chooses_trainings(study: list[list[str]]) -> None:
    run.main("enfr*")
    assert study == []


def test_figures_and_verdicts_are_made_of_any_points(
    study: list[list[str]], tmp_path: Path
) -> None:
    run.main()
    report.main()
    verdicts = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert "| EN-DE | help, permuted | holds | 2.0 [1.0, 3.0] |  |  |\n" in verdicts
    overview = (tmp_path / "points.md").read_text(encoding="utf-8").splitlines()
    assert overview[2] == "2 of the 2 points of study.yaml have been made."
    assert [line.split(" | ")[:2] for line in overview[6:]] == [
        ["| ende", "base"],
        ["| ende", "beam-1"],
    ]
    # Of the base point, all temperatures and three kinds of ensembles could be drawn.
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == {"beam", "ensembles", "temperature"}


def test_what_is_checked_in_belongs_to_the_study(tmp_path: Path, monkeypatch: Any) -> None:
    tables = {name: pd.read_csv(path, low_memory=False) for name, path in run.TABLES.items()}
    known = {(point.training, point.name): point for point in run.points()}
    made = [*zip(tables["points"]["training"], tables["points"]["point"], strict=True)]
    assert {*made} <= {*known}
    assert len({*made}) == len(made)
    for name in ("numbers", "claims"):
        rows = tables[name]
        assert {*zip(rows["training"], rows["point"], strict=True)} == {*made}
    for row in tables["points"].to_dict("records"):
        point = known[row["training"], row["point"]]
        for key, value in point.settings.items():
            assert str(row[key]) in (run.value_text(value), f"{value}.0"), key
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    for name, path in run.TABLES.items():
        (tmp_path / f"{name}.csv").write_bytes(path.read_bytes())
    report.main()
    for path in (*tmp_path.glob("*.md"), *tmp_path.glob("*.svg")):
        assert path.read_bytes() == (run.FOLDER / path.name).read_bytes(), path.name

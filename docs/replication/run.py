"""Make the points of the replication study: `python -m docs.replication.run [PATTERN]`.

PATTERN: of the names TRAINING/POINT, such as 'ende-both-*'; without it, all are made. Results lie
in outputs/replication/{training}/points/{point}; numbers.csv, claims.csv and points.csv in this
folder gain the rows of each finished point. Points that points.csv lists are not made again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import yaml

FOLDER = Path(__file__).resolve().parent
RESULTS = Path("outputs/replication")
TABLES = {name: FOLDER / f"{name}.csv" for name in ("points", "numbers", "claims")}
_OF_TRAINING = ("prepare", "train")
_OF_POINT = ("decode", "uncertainty", "metrics", "tables")
# What numbers.csv keeps of the cells of a point: quality and, for measures of sentences, detection.
_QUALITY = ["bleu", "wer_percent", "nll", "copied_percent"]
_DETECTION = ["prr", "roc_auc"]
_CELLS = (
    *("test_set", "ensemble", "hypotheses", "regime", "T", "B", "column", "metric"),
    *("value", "low", "high", "reason"),
)
_CLAIMS = ("claim", "test_sets", "verdict", "metric", "value", "low", "high", "reason")


@dataclass(frozen=True)
class Point:
    """One ensemble of a training, decoded with settings of its own."""

    training: str
    name: str
    task: str
    of_training: Mapping[str, Any]
    of_point: Mapping[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Key -> value of what differs from experiment=replication."""
        return {**self.of_training, **self.of_point}


def points() -> list[Point]:
    """Return the points of study.yaml, in its order."""
    trainings = yaml.safe_load((FOLDER / "study.yaml").read_text(encoding="utf-8"))["trainings"]
    return [
        Point(training, name, entry["task"], entry.get("settings", {}), settings)
        for training, entry in trainings.items()
        for name, settings in entry.get("points", {"base": {}}).items()
    ]


def main(pattern: str = "*") -> None:
    """Make the points that are not in points.csv, one after the other."""
    done = _rows("points")
    names = set() if done.empty else {*zip(done["training"], done["point"], strict=True)}
    todo = [
        point
        for point in points()
        if fnmatch(f"{point.training}/{point.name}", pattern)
        and (point.training, point.name) not in names
    ]
    for number, point in enumerate(todo, start=1):
        print(f"point {number} of {len(todo)}: {point.training} {point.name}", flush=True)
        _record(point, _make(point))


def _make(point: Point) -> dict[str, float]:
    """Run all stages; return the seconds of each."""
    trained = RESULTS / point.training
    folder = trained / "points" / point.name
    seconds = {stage: _run(stage, trained, point.task, point.of_training) for stage in _OF_TRAINING}
    folder.mkdir(parents=True, exist_ok=True)
    for name in _OF_TRAINING:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path(os.path.relpath(trained / name, folder)))
    return seconds | {stage: _run(stage, folder, point.task, point.settings) for stage in _OF_POINT}


def _run(stage: str, root: Path, task: str, settings: Mapping[str, Any]) -> float:
    options = [f"{key}={value_text(value)}" for key, value in settings.items()]
    options += [f"io.root={root}", f"data.downloads={RESULTS}/downloads", "tracking=off"]
    start = perf_counter()
    subprocess.run(
        [
            sys.executable,
            "-m",
            f"stages.{stage}",
            "experiment=replication",
            f"task={task}",
            *options,
        ],
        check=True,
    )
    return perf_counter() - start


def value_text(value: Any) -> str:
    """Return a value as Hydra reads it."""
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _record(point: Point, seconds: Mapping[str, float]) -> None:
    """Add the rows of a finished point to the tables, that of points.csv last."""
    folder = RESULTS / point.training / "points" / point.name
    cells = pd.read_csv(folder / "metrics" / point.task / "cells.csv", low_memory=False)
    claims = pd.read_csv(folder / "tables" / "claims.csv")
    name = {"training": point.training, "point": point.name}
    settings = {key: value_text(value) for key, value in point.settings.items()}
    row = {**name, "task": point.task, **settings}
    row |= {f"{stage}_seconds": round(value) for stage, value in seconds.items()}
    _add("numbers", name, _kept(cells)[[*_CELLS]])
    _add("claims", name, claims[[*_CLAIMS]])
    _add("points", name, pd.DataFrame([row]).drop(columns=["training", "point"]))


def _kept(cells: pd.DataFrame) -> pd.DataFrame:
    """Rows of quality, and of detection with length normalisation and all hypotheses of the beam.

    Errors are those of the best hypothesis, so that their measures have B = 1.
    """
    decode = ["test_set", "ensemble", "hypotheses", "regime", "metric"]
    is_largest = cells["B"] == cells.groupby(decode)["B"].transform("max")
    detection = is_largest & cells["metric"].isin(_DETECTION)
    is_normalised = cells["length_norm"].ne(False)  # or has no length norm
    return cells[cells["metric"].isin(_QUALITY) | (detection & is_normalised)]


def _add(table: str, name: Mapping[str, str], rows: pd.DataFrame) -> None:
    """Write a table with the rows of a point in place of its earlier ones."""
    old = _rows(table)
    if not old.empty:
        old = old[(old["training"] != name["training"]) | (old["point"] != name["point"])]
    new = rows.assign(**name)
    new = new[[*name, *rows.columns]]
    temporary = TABLES[table].with_suffix(".tmp")
    pd.concat([old, new]).to_csv(temporary, index=False, float_format="%.5g")
    temporary.replace(TABLES[table])


def _rows(table: str) -> pd.DataFrame:
    path = TABLES[table]
    return pd.read_csv(path, low_memory=False) if path.is_file() else pd.DataFrame()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A point of a sweep and the same point as an experiment that DVC queues have the same numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import copy_repository, environment_of_copy

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c")
DVC = (sys.executable, "-m", "dvc")
TINY = (
    "data.vocabulary_size=100 data.near_duplicate_jaccard=1 data.dev_sentences=6 "
    "train.batch_tokens=100 tracking=off"
)
POINT = "uncertainty.temperature=3"


def run(folder: Path, *command: str) -> str:
    result = subprocess.run(
        command, cwd=folder, env=environment_of_copy(), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def commit(folder: Path) -> None:
    run(folder, *GIT, "add", "-A")
    run(folder, *GIT, "commit", "-qm", "state")


def numbers_of_experiments(shown: Any) -> list[dict[str, float]]:
    """The contents of the metrics file of each experiment in `dvc exp show --json`."""
    revisions = [one for row in shown for exp in row["experiments"] or [] for one in exp["revs"]]
    return [file["data"] for one in revisions for file in (one["data"]["metrics"] or {}).values()]


def test_a_queued_experiment_has_the_numbers_of_a_point(
    tmp_path: Path, help_packages: Path
) -> None:
    clone, packages = tmp_path / "clone", tmp_path / "packages"
    packages.symlink_to(help_packages)
    settings = f"data.packages={packages} {TINY}"
    copy_repository(clone, "fault", settings)
    commit(clone)
    run(clone, *DVC, "repro", "train@nmt_ende")
    commit(clone)
    queued = f'conf/dag.yaml:overrides="{settings} {POINT}"'
    run(clone, *DVC, "exp", "run", "--queue", "-S", queued, "metrics@nmt_ende")
    run(clone, *DVC, "exp", "run", "--run-all")
    found = numbers_of_experiments(json.loads(run(clone, *DVC, "exp", "show", "--json")))
    overrides = (
        "experiment=fault",
        *settings.split(),
        POINT,
        "decode.also=[expr,members,teacher_forcing]",
    )
    run(clone, sys.executable, "-m", "stages.sweep", *overrides)
    (headline,) = (clone / "outputs" / "sweep").glob("*/point-*/metrics/*/headline.json")
    numbers = json.loads(headline.read_text(encoding="utf-8"))
    assert numbers
    assert found == [numbers]

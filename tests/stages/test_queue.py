"""The points of a sweep as experiments in DVC's queue: the same numbers, shown and applied."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import copy_repository, environment_of_copy
from tests.faults.small_run import SETTINGS

TEMPERATURES = (1, 10)
HEADLINE = "metrics/nmt_ende/headline.json"
DVC = (sys.executable, "-m", "dvc")


def run(folder: Path, *command: str) -> str:
    result = subprocess.run(
        command, cwd=folder, env=environment_of_copy(), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


@pytest.fixture
def settings(tmp_path: Path, help_packages: Path) -> list[str]:
    """Few sentences and sets, and without intervals, as a sweep is unless they are given."""
    packages = tmp_path / "packages"  # no space in it: nothing here needs quotes
    packages.symlink_to(help_packages)
    return [*SETTINGS, f"data.packages={packages}", "metrics.resamples=0"]


def test_queued_experiments_give_the_numbers_of_a_sweep(
    tmp_path: Path, settings: list[str]
) -> None:
    clone = tmp_path / "clone"
    copy_repository(clone, "fault", " ".join(settings))
    run(clone, *DVC, "repro", "train")
    run(clone, "git", "config", "user.name", "nobody")
    run(clone, "git", "config", "user.email", "nobody@example.org")
    run(clone, "git", "add", "--all")
    run(clone, "git", "commit", "--quiet", "--message", "members")
    points = ",".join(
        f'"{" ".join(settings)} uncertainty.temperature={one}"' for one in TEMPERATURES
    )
    queued = (*DVC, "exp", "run", "--queue", "-S", f"conf/dag.yaml:overrides={points}", "metrics")
    run(clone, *queued)
    run(clone, *DVC, "exp", "run", "--run-all")
    sweep = (sys.executable, "-m", "stages.sweep", "-m", "experiment=fault", *settings)
    run(clone, *sweep, f"uncertainty.temperature={','.join(map(str, TEMPERATURES))}")
    paths = (clone / "outputs" / "sweep" / "nmt_ende").glob(f"point-*/{HEADLINE}")
    swept = [json.loads(path.read_text()) for path in paths]
    assert len(swept) == len(TEMPERATURES)
    shown = _shown(clone)
    assert all(numbers in swept for numbers in shown.values())
    assert swept[0] != swept[1]
    assert len(shown) == len(TEMPERATURES)
    for name, numbers in shown.items():
        _apply(clone, name)
        applied = json.loads((clone / "outputs" / HEADLINE).read_text())
        assert applied == numbers
        assert "Running" not in run(clone, *DVC, "repro", "metrics")


def _apply(clone: Path, name: str) -> None:
    """Apply an experiment of `metrics`: DVC restores it, and tells that it has no tables."""
    command = [*DVC, "exp", "apply", name]
    result = subprocess.run(
        command, cwd=clone, env=environment_of_copy(), capture_output=True, text=True, check=False
    )
    told = result.stderr.partition("Checkout failed for following targets:\n")[2]
    assert {line for line in told.splitlines() if "/" in line and ":" not in line} == {
        "outputs/tables",
        "outputs/report",
    }


def _shown(clone: Path) -> dict[str, dict[str, float]]:
    """Name -> headline numbers of each experiment that has run, as `dvc exp show` has them."""
    ((_, *branches),) = [json.loads(run(clone, *DVC, "exp", "show", "--json"))]
    found = {}
    for branch in branches:
        for experiment in branch["experiments"] or []:
            (one,) = experiment["revs"]
            metrics = one["data"]["metrics"][f"outputs/{HEADLINE}"]
            found[one["name"]] = metrics["data"]
    return found

"""The points of a sweep as experiments in DVC's queue: the same numbers."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
    swept = [hashlib.md5(path.read_bytes()).hexdigest() for path in paths]
    assert len(set(swept)) == len(TEMPERATURES)
    assert sorted(_queued_headlines(clone)) == sorted(swept)


def _queued_headlines(clone: Path) -> list[str]:
    """The md5 of headline.json of each experiment that has run, as its dvc.lock has it."""
    names = run(clone, *DVC, "exp", "list", "--name-only").split()
    found = []
    for name in names:
        lock = yaml.safe_load(run(clone, "git", "show", f"{_reference(clone, name)}:dvc.lock"))
        outs = lock["stages"]["metrics@nmt_ende"]["outs"]
        found += [out["md5"] for out in outs if out["path"] == f"outputs/{HEADLINE}"]
    return found


def _reference(clone: Path, name: str) -> str:
    listed = run(clone, "git", "for-each-ref", "--format=%(refname)", "refs/exps").split()
    (reference,) = (one for one in listed if one.endswith(f"/{name}"))
    return reference

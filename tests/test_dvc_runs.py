"""DVC runs the stages that an edit affects, and the points of a sweep as queued experiments."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import copy_repository, environment_of_copy
from tests.faults.small_run import SETTINGS

pytestmark = pytest.mark.slow

TEMPERATURES = (1, 10)
HEADLINE = "metrics/nmt_ende/headline.json"
DVC = (sys.executable, "-m", "dvc")


def run(folder: Path, *command: str) -> str:
    result = subprocess.run(
        command, cwd=folder, env=environment_of_copy(), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def make(folder: Path, target: str) -> str:
    """Run a target of the Makefile, without the installation that comes before it.

    Below `make test`, make would also print which folder it enters and leaves.
    """
    return run(folder, "make", "--no-print-directory", "--assume-old=setup", target)


def reproduced(folder: Path) -> list[str]:
    """Run `make repro`; return the stages that ran."""
    return stages_in(make(folder, "repro"))


def stages_in(output: str) -> list[str]:
    return sorted(set(re.findall(r"(?:Running stage '|would run )(\w+)", output)))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> list[str]:
    """Return settings with few sentences and test sets, and without intervals, as in a sweep."""
    packages = tmp_path_factory.mktemp("no_space") / "packages"  # so that the path needs no quotes
    packages.symlink_to(help_packages)
    return [*SETTINGS, f"data.packages={packages}", "metrics.resamples=0"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, settings: list[str]) -> Path:
    """Copy the repository and run all stages of one task."""
    clone = tmp_path_factory.mktemp("dvc") / "clone"
    copy_repository(clone, "fault", " ".join(settings))
    output = make(clone, "repro")
    assert {"train", "decode", "tables"} < {*stages_in(output)}
    assert "nmt_ende: dvc.lock has no results, so that DVC runs prepare, train" in output
    assert output.splitlines()[-2:] == [
        "  git add dvc.lock",
        '  git commit -m "Results of make repro"',
    ]
    return clone


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_edit_reruns_the_stages_that_read_it(clone: Path) -> None:
    assert reproduced(clone) == []
    after_decoding = ["metrics", "tables", "uncertainty"]
    temperature = clone / "conf" / "uncertainty" / "default.yaml"
    edit(temperature, "temperature: [10, 1]", "temperature: [5, 1]")
    assert stages_in(make(clone, "preview")) == after_decoding
    assert reproduced(clone) == after_decoding  # the preview has run compose
    edit(clone / "conf" / "experiment" / "fault.yaml", "beam: 2", "beam: 3")
    output = make(clone, "repro")
    assert "settings of stage decode have changed (decode), so that DVC runs it" in output
    assert stages_in(output) == sorted(["compose", "decode", *after_decoding])


def test_queued_experiments_give_the_numbers_of_a_sweep(clone: Path, settings: list[str]) -> None:
    run(clone, "git", "config", "user.name", "nobody")
    run(clone, "git", "config", "user.email", "nobody@example.org")
    run(clone, "git", "add", "--all")
    run(clone, "git", "commit", "--quiet", "--message", "members")
    points = ",".join(
        f'"{" ".join(settings)} uncertainty.temperature={temperature}"'
        for temperature in TEMPERATURES
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
        run(clone, *DVC, "exp", "apply", name)
        applied = json.loads((clone / "outputs" / HEADLINE).read_text())
        assert applied == numbers
        assert "Running" not in run(clone, *DVC, "repro", "metrics")


def _shown(clone: Path) -> dict[str, dict[str, float]]:
    """Return name -> headline numbers of each experiment that `dvc exp show` lists."""
    ((_, *branches),) = [json.loads(run(clone, *DVC, "exp", "show", "--json"))]
    headlines = {}
    for branch in branches:
        for experiment in branch["experiments"] or []:
            (revision,) = experiment["revs"]
            metrics = revision["data"]["metrics"][f"outputs/{HEADLINE}"]
            headlines[revision["name"]] = metrics["data"]
    return headlines

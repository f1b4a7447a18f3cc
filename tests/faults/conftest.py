"""One undisturbed run of the pipeline; every disturbed run is compared with it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import made_once
from tests.faults.small_run import STAGES, SmallRun


@dataclass(frozen=True)
class Undisturbed:
    """A complete run, with the duration and the number of moved files of each stage."""

    run: SmallRun
    seconds: dict[str, float]
    files: dict[str, int]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Undisturbed:
    with made_once(tmp_path_factory, "undisturbed") as (root, is_first):
        run = SmallRun(root, help_packages)
        measured = root / "measured.json"
        if is_first:
            measured.write_text(json.dumps(_measured(run)))
        seconds, files = json.loads(measured.read_text())
    return Undisturbed(run, seconds, files)


def _measured(run: SmallRun) -> tuple[dict[str, float], dict[str, int]]:
    """Run all stages; return their durations and the numbers of files they moved into place."""
    seconds, files = {}, {}
    for stage in STAGES:
        start = time.monotonic()
        run.finish(stage)
        seconds[stage] = time.monotonic() - start
        files[stage] = run.files_moved()
    return seconds, files


@pytest.fixture(scope="module", autouse=True)
def _processes_of_their_own(side_by_side: None) -> None:
    """Let every stage run its jobs in separate processes."""


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> int:
    """Return how often each stage is killed, each time at another moment."""
    return int(request.config.getoption("moments"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Run the pipeline twice only with --moments 20: it takes minutes."""
    is_long = collection_path.name == "test_twice.py"
    return True if is_long and config.getoption("moments") < 20 else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Set `any_stage` to the cheapest stage, or to every stage with --moments 20."""
    if "any_stage" in metafunc.fixturenames:
        every = metafunc.config.getoption("moments") >= 20
        metafunc.parametrize("any_stage", STAGES if every else ["uncertainty"])

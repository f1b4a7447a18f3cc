"""One undisturbed run, to which every disturbed one is compared."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.small_run import STAGES, SmallRun


@dataclass(frozen=True)
class Undisturbed:
    """A whole run; seconds: stage -> how long it took."""

    run: SmallRun
    seconds: dict[str, float]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Undisturbed:
    run = SmallRun(tmp_path_factory.mktemp("undisturbed"), help_packages)
    seconds = {}
    for stage in STAGES:
        start = time.monotonic()
        run.finish(stage)
        seconds[stage] = time.monotonic() - start
    return Undisturbed(run, seconds)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`moment`: numbers of --moments; `any_stage`: two stages, or all with --moments 20."""
    moments = metafunc.config.getoption("moments")
    if "moment" in metafunc.fixturenames:
        metafunc.parametrize("moment", range(moments))
    if "any_stage" in metafunc.fixturenames:
        metafunc.parametrize("any_stage", STAGES if moments >= 20 else ("prepare", "uncertainty"))

"""A second run of the pipeline from scratch in another folder gives the same bytes."""

from __future__ import annotations

from pathlib import Path

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import STAGES, SmallRun


def test_second_run_gives_the_same_files(undisturbed: Undisturbed, tmp_path: Path) -> None:
    again = SmallRun(tmp_path / "again: 日本", undisturbed.run.packages)
    for stage in STAGES:
        again.finish(stage)
        assert again.digests(stage) == undisturbed.run.digests(stage), stage

"""The whole pipeline once more, from nothing and in another folder: the same bytes."""

from __future__ import annotations

from pathlib import Path

from tests.faults.conftest import Undisturbed
from tests.faults.small_run import STAGES, SmallRun


def test_pipeline_made_twice_is_the_same(undisturbed: Undisturbed, tmp_path: Path) -> None:
    again = SmallRun(tmp_path / "again: 日本", undisturbed.run.packages)
    for stage in STAGES:
        again.finish(stage)
        assert again.made(stage) == undisturbed.run.made(stage), stage

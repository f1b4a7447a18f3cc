"""Stage metrics refuses measures that were computed with other settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.metrics.task import check_measure_settings
from pipeline.run.artifacts import Artifact
from tests.composed_settings import composed_settings


@pytest.fixture
def measures(tmp_path: Path) -> Artifact:
    folder = tmp_path / "nmt_ende"
    (folder / "part").mkdir(parents=True)
    grid = {"beam": [1, 5], "temperature": [10.0, 1.0], "length_norm": [True, False]}
    (folder / "part" / "checks.json").write_text(json.dumps({"grid": grid}), encoding="utf-8")
    return Artifact(folder, "uncertainty", required=False)


def test_some_of_the_measured_values_are_enough(measures: Artifact) -> None:
    settings = composed_settings("uncertainty.temperature=10", "uncertainty.beam=[5]")
    check_measure_settings(settings, measures)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "uncertainty.temperature=[1,5]",
            r"uncertainty.temperature: there are no measures of \[5\]",
        ),
        ("uncertainty.beam=3", r"uncertainty.beam: there are no measures of \[3\]"),
    ],
)
def test_a_value_without_measures_is_refused(
    measures: Artifact, override: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        check_measure_settings(composed_settings(override), measures)

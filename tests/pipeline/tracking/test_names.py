"""The beginning of a run's name tells it apart."""

from __future__ import annotations

import pytest

from pipeline.run.points import short_names
from pipeline.tracking.names import run_name, settings_of


def test_name_of_a_point_is_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pipeline.tracking.names._overrides",
        lambda: [
            "experiment=laptop",
            "uncertainty.temperature=1",
            "decode.beam=5",
            "seed=3",
            "io.root=x",
        ],
    )
    keys = ["uncertainty.temperature", "decode.beam"]
    assert run_name("sweep", "laptop", keys) == "T=1 B=5"
    assert run_name("sweep", "laptop", []) == "sweep"


def test_name_of_a_single_run_has_stage_overrides_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.tracking.names._overrides", lambda: ["metrics.resamples=100"])
    assert run_name("metrics", "demo", None) == "metrics resamples=100 demo"
    monkeypatch.setenv("DVC_EXP_NAME", "puffy-coni")
    assert run_name("metrics", "demo", None) == "puffy-coni metrics resamples=100 demo"


def test_name_of_a_sweep_has_all_values() -> None:
    overrides = ["decode.beam=1,5", "seed=3", "uncertainty.temperature=range(1,5)"]
    assert short_names(settings_of(overrides)) == "B=1,5 seed=3 T=range(1,5)"

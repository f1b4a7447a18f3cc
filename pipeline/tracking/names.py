"""Names of runs in MLflow, whose beginning tells them apart: MLflow cuts off the end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from hydra.core.hydra_config import HydraConfig

from pipeline.run.points import short_names
from pipeline.run.settings import MACHINE_KEYS

_SHOWN_ELSEWHERE = ("task", "experiment")  # MLflow's experiment is the task
_NAME_IN_DVC = "DVC_EXP_NAME"  # which DVC sets for the stages of an experiment


def run_name(stage: str, size: str, swept_keys: Sequence[str] | None) -> str:
    """Return `T=1 B=5` for a point of a sweep, and otherwise `metrics resamples=100 demo`.

    swept_keys: the keys that differ between the points; None outside of a sweep. size: name of the
    group experiment. The run of an experiment of DVC begins with its name there.
    """
    overrides = settings_of(_overrides())
    if swept_keys is not None:
        differing = [pair for pair in overrides if pair[0] in swept_keys]
        return short_names(differing) or stage
    return " ".join(
        filter(None, [os.environ.get(_NAME_IN_DVC), stage, short_names(overrides), size])
    )


def _overrides() -> list[str]:
    return list(map(str, HydraConfig.get().overrides.task)) if HydraConfig.initialized() else []


def settings_of(overrides: Iterable[str]) -> list[tuple[str, str]]:
    """Return (key, value) of the overrides that name neither a place nor what is shown anyway."""
    pairs = [override.lstrip("+").partition("=") for override in overrides]
    hidden = (*MACHINE_KEYS, *_SHOWN_ELSEWHERE)
    return [(key, value) for key, _, value in pairs if key.partition(".")[0] not in hidden]

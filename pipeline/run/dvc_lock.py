"""What DVC will run for a task, judged by the settings that dvc.lock records of the last run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipeline.run.code import declared_params, stages_of_a_task
from pipeline.run.settings import ROOT


def announcement(task: str, file: Path) -> str | None:
    """Say in a sentence what DVC will run with these settings; DVC itself says it stage by stage.

    file: the composed settings of the task. None if DVC did not start this process, or if no
    setting has changed; changes of code and data are not considered.
    """
    if "DVC_STAGE" not in os.environ:
        return None
    lock = ROOT / "dvc.lock"
    last = _read(lock).get("stages", {}) if lock.is_file() else {}
    names = stages_of_a_task()
    if f"train@{task}" not in last:
        return f"{task}: dvc.lock has no results, so that DVC runs {', '.join(names)}.{_advice()}"
    settings = _read(file)
    for place, stage in enumerate(names):
        recorded = last.get(f"{stage}@{task}", {}).get("params", {}).get(str(file), {})
        keys = declared_params(stage) or []
        changed = [key for key in keys if _value(settings, key) != recorded.get(key)]
        if changed:
            later = ", ".join([*names[place + 1 :], "tables"])
            return (
                f"{task}: settings of stage {stage} have changed ({', '.join(changed)}), so that "
                f"DVC runs it, and then {later} where inputs differ."
            )
    return None


def _read(path: Path) -> Any:
    """Return the content of a YAML file; PyYAML alone would read the number 1e-05 as a text."""
    return OmegaConf.to_container(OmegaConf.load(path))


def _value(settings: Any, key: str) -> Any:
    for name in key.split("."):
        settings = settings[name]
    return settings


def _advice() -> str:
    """What to do if an experiment of DVC repeats work that was done before."""
    if "DVC_EXP_NAME" not in os.environ:
        return ""
    return (
        " To build on the results of make repro, stop this experiment (dvc queue stop --kill), "
        "commit dvc.lock and start the experiment again."
    )

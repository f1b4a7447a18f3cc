"""What DVC will run for a task, judged by the settings that dvc.lock records of the last run."""

from __future__ import annotations

import os

import yaml
from omegaconf import DictConfig, OmegaConf

from pipeline.run.code import declared_params, stages_of_a_task
from pipeline.run.settings import ROOT


def announcement(config: DictConfig, task: str, file: str) -> str | None:
    """Say in a sentence what DVC will run with these settings; DVC itself says it stage by stage.

    file: the settings of the task in dvc.yaml. None if DVC did not start this process, or if no
    setting has changed; changes of code and data are not considered.
    """
    if "DVC_STAGE" not in os.environ:
        return None
    path = ROOT / "dvc.lock"
    last = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"] if path.is_file() else {}
    names = stages_of_a_task()
    if f"train@{task}" not in last:
        return f"{task}: dvc.lock has no results, so that DVC runs {', '.join(names)}.{_advice()}"
    for place, stage in enumerate(names):
        recorded = last.get(f"{stage}@{task}", {}).get("params", {}).get(file, {})
        changed = [
            key for key in declared_params(stage) or [] if _plain(config, key) != recorded.get(key)
        ]
        if changed:
            later = ", ".join([*names[place + 1 :], "tables"])
            return (
                f"{task}: settings of stage {stage} have changed ({', '.join(changed)}), so that "
                f"DVC runs it, and then {later} where inputs differ."
            )
    return None


def _advice() -> str:
    """What to do if an experiment of DVC repeats work that was done before."""
    if "DVC_EXP_NAME" not in os.environ:
        return ""
    return (
        " To build on the results of make repro, stop this experiment, commit dvc.lock and start "
        "the experiment again."
    )


def _plain(config: DictConfig, key: str) -> object:
    value = OmegaConf.select(config, key)
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value

"""The parent run of a sweep: created once, before its jobs start, and known to them by a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from pipeline.config import MACHINE_KEYS
from pipeline.tracking.experiment import open_experiment

_PARENT_FILE = "mlflow_parent_run.txt"


class SweepParent(Callback):
    """Creates the store, the experiment and the parent run once, before a sweep's jobs start."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write the parent run's id into the sweep's folder."""
        if not config.tracking.enabled or any(
            str(one).startswith("part=") for one in config.hydra.overrides.task
        ):
            return
        client, experiment_id = open_experiment(
            config.tracking.uri, Path(config.io.root), config.task.name
        )
        swept = [one for one in map(str, config.hydra.overrides.task) if not _is_of_machine(one)]
        name = " ".join(dict.fromkeys(["sweep", config.hydra.job.name, *swept]))
        run = client.create_run(experiment_id, run_name=name, tags={"task": config.task.name})
        folder = Path(config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _PARENT_FILE).write_text(run.info.run_id, encoding="utf-8")

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Close the parent run."""
        path = Path(config.hydra.sweep.dir) / _PARENT_FILE
        if path.is_file():
            client, _experiment_id = open_experiment(
                config.tracking.uri, Path(config.io.root), config.task.name
            )
            client.set_terminated(path.read_text(encoding="utf-8"))


def _is_of_machine(override: str) -> bool:
    return override.lstrip("+~").partition("=")[0].partition(".")[0] in MACHINE_KEYS


def sweep_parent() -> str | None:
    """The id of the parent run of the sweep that this process is a job of."""
    if not HydraConfig.initialized():
        return None
    path = Path(HydraConfig.get().sweep.dir) / _PARENT_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else None

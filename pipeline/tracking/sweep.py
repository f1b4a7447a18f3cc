"""The parent run of a sweep: created once, before its jobs start, and known to them by a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from pipeline.errors import MachineError
from pipeline.run.settings import MACHINE_KEYS
from pipeline.tracking.experiment import open_experiment, taking
from pipeline.tracking.log import RunLog

_PARENT_FILE = "mlflow_parent_run.txt"


@dataclass(frozen=True)
class Sweep:
    """A multirun of this process: the folder of its jobs' folders, and its run."""

    folder: Path
    log: RunLog


_started: list[Sweep] = []  # Hydra makes the callback itself, and hands nothing of it on


class SweepParent(Callback):
    """Creates the store, the experiment and the parent run once, before a sweep's jobs start."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write the parent run's id into the sweep's folder; the process ends where it cannot."""
        if any(str(one).startswith("part=") for one in config.hydra.overrides.task):
            return
        folder = Path(config.hydra.sweep.dir)
        try:
            _started.append(Sweep(folder, _parent(config, folder)))
        except MachineError as error:  # of which Hydra would make a warning
            sys.exit(f"error: {error}")


def _parent(config: DictConfig, folder: Path) -> RunLog:
    if not config.tracking.enabled:
        return RunLog()
    client, experiment_id = open_experiment(
        config.tracking.uri, Path(config.io.root), config.task.name
    )
    swept = [one for one in map(str, config.hydra.overrides.task) if not _is_of_machine(one)]
    name = " ".join(dict.fromkeys(["sweep", config.hydra.job.name, *swept]))
    with taking(client.tracking_uri, f"run {name}"):
        run = client.create_run(experiment_id, run_name=name, tags={"task": config.task.name})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _PARENT_FILE).write_text(run.info.run_id, encoding="utf-8")
    return RunLog(client, run.info.run_id)


def _is_of_machine(override: str) -> bool:
    return override.lstrip("+~").partition("=")[0].partition(".")[0] in MACHINE_KEYS


def run_and_end_sweep(application: Callable[[], None], at_end: Callable[[Sweep], None]) -> None:
    """Run Hydra's application; where it was a sweep, call `at_end` and end the sweep's run.

    The run is failed where one of the two raises. `at_end` is not called for a sweep that was told
    to end, since its jobs were then too.
    """
    try:
        try:
            application()
        except Exception:
            _close(at_end)  # an error of its own says more
            raise
        _close(at_end)
    except BaseException:
        for sweep in _started:
            with suppress(MachineError):  # what was raised says more
                sweep.log.end(failed=True)
        raise
    for sweep in _started:
        sweep.log.end(failed=False)


def _close(at_end: Callable[[Sweep], None]) -> None:
    for sweep in _started:
        at_end(sweep)


def sweep_parent() -> str | None:
    """The id of the parent run of the sweep that this process is a job of."""
    if not HydraConfig.initialized():
        return None
    path = Path(HydraConfig.get().sweep.dir) / _PARENT_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else None

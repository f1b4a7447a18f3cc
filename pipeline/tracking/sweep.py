"""The MLflow run of a sweep, created before its jobs start; a file tells them about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from pipeline.errors import MachineError
from pipeline.run.files import write_json
from pipeline.run.points import short_names
from pipeline.run.settings import PipelineConfig
from pipeline.tracking.experiment import is_tracked, one_line_errors, open_experiment
from pipeline.tracking.log import RunLog
from pipeline.tracking.names import settings_of

_STAGES_WITHOUT_RUNS = ("compose", "prepare", "decode", "uncertainty", "plan")
_PARENT_FILE = "mlflow_parent_run.json"


@dataclass(frozen=True)
class Parent:
    """The run of a sweep: its id, and the keys that differ between the points."""

    run_id: str
    swept_keys: list[str]


@dataclass(frozen=True)
class Sweep:
    """A multirun that this process started.

    folder: what its jobs tell each other and this process; log: the run of the sweep.
    """

    folder: Path
    log: RunLog


_started: list[Sweep] = []  # Hydra creates the callback and does not return it


class SweepParent(Callback):
    """Create the store, the experiment and the run of a sweep once, before its jobs start.

    Sweeps of stages that log no runs have none. The other settings of the callback tell jobs which
    keys are swept.
    """

    def __init__(self, folder: str, **_: Any) -> None:
        self._folder = Path(folder)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write the id of the sweep's run into the folder. Exit if MLflow fails."""
        if any(override.startswith("part=") for override in _overrides(config)):
            return
        try:
            _started.append(Sweep(self._folder, _parent(config, self._folder)))
        except MachineError as error:  # Hydra turns errors of callbacks into warnings
            sys.exit(f"error: {error}")


def _parent(config: DictConfig, folder: Path) -> RunLog:
    overrides = _overrides(config)
    of_given_stores = any(override.startswith("io.store=") for override in overrides)
    has_no_runs = of_given_stores or config.hydra.job.name in _STAGES_WITHOUT_RUNS
    if has_no_runs or not is_tracked(cast(PipelineConfig, config)):
        return RunLog()
    client, experiment_id = open_experiment(
        config.tracking.uri, Path(config.io.root), config.task.name
    )
    name = f"{config.hydra.job.name} {short_names(settings_of(overrides))}".strip()
    with one_line_errors(client.tracking_uri, f"run {name}"):
        run = client.create_run(experiment_id, run_name=name, tags={"task": config.task.name})
    folder.mkdir(parents=True, exist_ok=True)
    parent = Parent(run.info.run_id, [*config.hydra.callbacks.sweep_parent.swept])
    write_json(folder / _PARENT_FILE, asdict(parent))
    return RunLog(client, run.info.run_id)


def _overrides(config: DictConfig) -> list[str]:
    """The overrides as requested: those with `${hydra:...}` have a value in jobs only."""
    return cast(list[str], OmegaConf.to_container(config.hydra.overrides.task, resolve=False))


def run_and_end_sweep(application: Callable[[], None], at_end: Callable[[Sweep], None]) -> None:
    """Run a Hydra application. If it was a sweep, call `at_end` and end the sweep's run.

    The status of the run is failed if the application or `at_end` raises. After an interruption
    `at_end` is not called, because the jobs were interrupted too.
    """
    try:
        try:
            application()
        except Exception:
            _close(at_end)  # an error raised here says more
            raise
        _close(at_end)
    except BaseException:
        for sweep in _started:
            with suppress(MachineError):  # the error that was raised says more
                sweep.log.end(failed=True)
        raise
    for sweep in _started:
        sweep.log.end(failed=False)


def _close(at_end: Callable[[Sweep], None]) -> None:
    for sweep in _started:
        at_end(sweep)


def sweep_parent() -> Parent | None:
    """Return the sweep that this job belongs to; None outside a sweep."""
    if not HydraConfig.initialized():
        return None
    path = Path(HydraConfig.get().callbacks["sweep_parent"].folder) / _PARENT_FILE
    return Parent(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None

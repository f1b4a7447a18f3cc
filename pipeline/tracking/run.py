"""The MLflow run of a stage: its settings, tags and datasets."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from omegaconf import DictConfig, OmegaConf

from pipeline.run.artifacts import Artifact
from pipeline.run.code import commit_hash
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import MACHINE_KEYS, PipelineConfig
from pipeline.tracking.experiment import (
    is_tracked,
    metric_name,
    one_line_errors,
    open_experiment,
)
from pipeline.tracking.log import RunLog, ending, milliseconds
from pipeline.tracking.names import run_name
from pipeline.tracking.sweep import sweep_parent

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput


_DIGEST_LENGTH = 36  # MLflow's limit
_PARAM_LENGTH = 6000
_BATCH = 100


@contextmanager
def open_run(config: PipelineConfig, stage: str, begun: float | None = None) -> Iterator[RunLog]:
    """Yield the run of a stage; inside a sweep it is a child of the sweep's run.

    begun: when the work of the stage began, in seconds since 1970, or None for now; stages log at
    their end. The status is failed if the block raises. All settings are logged as params, even
    those that the stage does not read: the metrics of two runs may differ because of the beam of
    their decodes. Raises MachineError if MLflow fails.
    """
    if not is_tracked(config):
        yield RunLog()
        return
    task, root = config.task.name, Path(config.io.root)
    client, experiment_id = open_experiment(config.tracking.uri, root, task)
    settings = _all_settings(config)
    tags = {
        "stage": stage,
        "task": task,
        "ensemble": settings.ensemble.name,
        "combination": settings.decode.combination,
        "git": commit_hash(),
        "data": _data_hash(root / "prepare" / task / "manifest.json"),
    }
    parent = sweep_parent()
    if parent:
        tags["mlflow.parentRunId"] = parent.run_id
    name = run_name(stage, settings.experiment.name, parent.swept_keys if parent else None)
    start = milliseconds(begun)
    with one_line_errors(client.tracking_uri, f"run {name}"):
        run = client.create_run(experiment_id, run_name=name, tags=tags, start_time=start)
        run_id = run.info.run_id
    with ending(RunLog(client, run_id)) as log:
        with one_line_errors(client.tracking_uri, f"settings of run {name}"):
            _log_params(client, run_id, settings)
            client.log_inputs(run_id, datasets(root / "prepare" / task, stage))
        yield log


def open_parent(config: PipelineConfig) -> RunLog:
    """Return the run of the sweep that this job belongs to; outside a sweep it logs nothing."""
    parent = sweep_parent()
    if parent is None or not is_tracked(config):
        return RunLog()
    client, _ = open_experiment(config.tracking.uri, Path(config.io.root), config.task.name)
    return RunLog(client, parent.run_id)


def _all_settings(config: PipelineConfig) -> DictConfig:
    path = config.from_config
    return cast(DictConfig, OmegaConf.load(path) if path else config)


def _data_hash(manifest: Path) -> str:
    return file_sha256(manifest) if manifest.is_file() else "unknown"


def _log_params(client: MlflowClient, run_id: str, config: DictConfig) -> None:
    from mlflow.entities import Param

    params = [
        Param(name, _shortened(str(value)))
        for name, value in _leaves(config)
        if name.split(".")[0] not in MACHINE_KEYS
    ]
    for start in range(0, len(params), _BATCH):
        client.log_batch(run_id, params=params[start : start + _BATCH])
    client.log_text(run_id, OmegaConf.to_yaml(config, resolve=True), "settings.yaml")


def _shortened(text: str) -> str:
    """The text of a param, cut to MLflow's limit; a cut one ends with a mark and its sha256."""
    if len(text) <= _PARAM_LENGTH:
        return text
    mark = f"... (cut; all in settings.yaml, sha256 {hashlib.sha256(text.encode()).hexdigest()})"
    return text[: _PARAM_LENGTH - len(mark)] + mark


def _leaves(config: DictConfig, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in map(str, config):
        if OmegaConf.is_missing(config, name):
            continue
        value = config[name]
        if isinstance(value, DictConfig):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield metric_name(f"{prefix}{name}"), value


def datasets(prepared: Path, stage: str) -> list[DatasetInput]:
    """Return the datasets of a stage, each with a digest of its files.

    prepared: the folder {io.root}/prepare/{task}. Stage train has the training data, other stages
    have the test sets. Without prepared data there are none.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    folder, context = ("fairseq", "training") if stage == "train" else ("test", "evaluation")
    return [
        DatasetInput(
            Dataset(
                name=f"{prepared.name} {name}",
                digest=digest(hashes)[:_DIGEST_LENGTH],
                source_type="local",
                source=json.dumps({"prepare": prepared.name, "files": sorted(hashes)}),
            ),
            [InputTag("mlflow.data.context", context)],
        )
        for name, hashes in _hashes(prepared, folder).items()
        if folder == "test" or name == "train"
    ]


def _hashes(prepared: Path, folder: str) -> dict[str, dict[str, str]]:
    """Return name of a set -> file -> sha256 for the files in a subfolder of `prepared`."""
    if not (prepared / "manifest.json").is_file():
        return {}
    artifact = Artifact(prepared, "prepare")
    sets: dict[str, dict[str, str]] = defaultdict(dict)
    for path in artifact.names(f"{folder}/"):
        sets[PurePosixPath(path).name.partition(".")[0]][path] = artifact.sha256(path)
    return dict(sets)

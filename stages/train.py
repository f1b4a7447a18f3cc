"""Train the members of the ensembles, side by side; a member that is done is not trained again."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from pipeline import tracking
from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.learning_curve import gather_curves
from pipeline.run.application import run
from pipeline.run.artifacts import Artifact, PartFolder, Provenance
from pipeline.run.code import code_digest
from pipeline.run.files import digest, file_sha256
from pipeline.run.jobs import run_parts
from pipeline.run.settings import PipelineConfig, implementation, plain

_log = logging.getLogger(__name__)


def train(config: PipelineConfig) -> None:
    """Write one part a seed to {io.root}/train/{task}: weights, average, model.json, curve.csv.

    Beside that folder, {task}.curves.csv holds the curves of all members, for a plot.
    """
    root = Path(config.io.root)
    data = root / "prepare" / config.task.name / "fairseq"
    code = code_digest("train", implementation(config.train._target_, "train._target_"))
    settings = [plain(config.train), plain(config.model)]
    files = _prepared_files(data.parent)
    parts = {
        f"seed_{seed}": Provenance("train", code, digest(*settings, seed), files)
        for seed in config.ensemble.seeds
    }
    folder = PartFolder(root / "train" / config.task.name, "train", parts)
    resume = root / "resume" / "train" / config.task.name
    if config.part is not None:
        if config.part not in folder.parts:
            raise ConfigError(f"part must be one of {', '.join(folder.parts)}, got {config.part}")
        _train_part(config, folder, data, resume)
        return
    trained = run_parts(config, folder)
    shutil.rmtree(resume, ignore_errors=True)
    curves = {name: folder.root / name / "curve.csv" for name in folder.parts}
    gather_curves(curves, folder.root.with_name(f"{config.task.name}.curves.csv"))
    _log.info("%s: %d of %d members trained now", folder.root, len(trained), len(folder.parts))
    with tracking.open_run(config, "train") as log:
        for name in trained:
            log.curve(name, curves[name], step="update")


def _prepared_files(folder: Path) -> dict[str, str]:
    """Name -> sha256 of the files that training reads. Raises DataError if one has changed."""
    prepared = Artifact(folder, "prepare")
    files = {name: file_sha256(prepared.file(name)) for name in prepared.names("fairseq/")}
    if not files:
        raise DataError(f"{folder}/fairseq: no prepared data. Run python -m stages.prepare first.")
    return files


def _train_part(config: PipelineConfig, folder: PartFolder, data: Path, resume: Path) -> None:
    name = str(config.part)
    with folder.building(name) as out:
        job = TrainJob(
            title=f"train {config.task.name} {name}",
            data=data,
            out=out,
            resume=resume / f"{name}-{folder.parts[name][:16]}",
            family=config.task.family,
            seed=int(name.removeprefix("seed_")),
            source_language=config.task.source_language,
            target_language=config.task.target_language,
            model=plain(config.model),
            train=plain(config.train),
        )
        implementation(config.train._target_, "train._target_")(job)


if __name__ == "__main__":
    run(train, has_parts=True)

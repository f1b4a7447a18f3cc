"""Train the members of the ensembles, side by side; finished members are not trained again."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

from pipeline import tracking
from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.learning_curve import gather_curves
from pipeline.run.application import run
from pipeline.run.artifacts import Artifact, PartFolder, Provenance
from pipeline.run.code import code_digest
from pipeline.run.extras import check_extra_of
from pipeline.run.files import digest, file_sha256
from pipeline.run.jobs import run_parts
from pipeline.run.settings import PipelineConfig, implementation, plain

_log = logging.getLogger(__name__)


def train(config: PipelineConfig) -> None:
    """Write one part per seed to {io.root}/train/{task}: weights, average, model.json, curve.csv.

    {io.root}/train/{task}.curves.csv holds the learning curves of all members. Ensembles of models
    that are trained elsewhere have no seeds; both then have no members.
    """
    begun = time.time()
    root, task = Path(config.io.root), config.task.name
    check_extra_of(config.train._target_, "stage train")
    seeds = {f"seed_{seed}": seed for seed in config.ensemble.seeds}
    trainer = implementation(config.train._target_, "train._target_")
    code = code_digest("train", trainer)
    files = _prepared_files(root / "prepare" / task) if seeds else {}
    settings = [plain(config.train), plain(config.model)]
    parts = {
        name: Provenance("train", code, digest(*settings, seed), files)
        for name, seed in seeds.items()
    }
    folder = PartFolder(root / "train" / task, "train", parts)
    resume = root / "resume" / "train" / task
    if config.part is None:
        _train_all(config, folder, resume, begun)
        return
    if config.part not in seeds:
        raise ConfigError(f"part: must be one of {', '.join(seeds)} (got {config.part}).")
    marker = _marker(resume, config.part)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    with folder.building(config.part) as out:
        trainer(
            TrainJob(
                title=f"train {task} {config.part}",
                data=root / "prepare" / task / "fairseq",
                out=out,
                resume=resume / f"{config.part}-{folder.parts[config.part][:16]}",
                family=config.task.family,
                seed=seeds[config.part],
                source_language=config.task.source_language,
                target_language=config.task.target_language,
                model=plain(config.model),
                train=plain(config.train),
            )
        )


def _prepared_files(folder: Path) -> dict[str, str]:
    """Map the files that training reads to their sha256; DataError if one has changed."""
    prepared = Artifact(folder, "prepare")
    files = {name: file_sha256(prepared.file(name)) for name in prepared.names("fairseq/")}
    if not files:
        raise DataError(f"{folder}/fairseq: no prepared data. Run python -m stages.prepare first.")
    return files


def _marker(resume: Path, part: str) -> Path:
    """The file whose time says when a job began to train a member, or to resume it."""
    return resume / f"{part}.begun"


def _train_all(config: PipelineConfig, folder: PartFolder, resume: Path, begun: float) -> None:
    if not folder.parts:
        _log.info("ensemble.seeds: [], so that nothing is trained")
    missing = folder.missing()
    if missing:
        finished = len(folder.parts) - len(missing)
        _log.info("%s: trains %s; %d finished", folder.root, ", ".join(missing), finished)
    trained = run_parts(config, folder)
    times = {name: _times(_marker(resume, name), folder.root / name) for name in trained}
    shutil.rmtree(resume, ignore_errors=True)
    curves = {name: folder.root / name / "curve.csv" for name in folder.parts}
    gather_curves(curves, folder.root.with_name(f"{config.task.name}.curves.csv"))
    _log.info("%s: trained %d of %d members", folder.root, len(trained), len(folder.parts))
    with tracking.open_run(config, "train", begun) as log:
        log.mean_curve(curves.values())
        for name in trained:
            log.curve(name, curves[name], *times[name])


def _times(marker: Path, part: Path) -> tuple[float, float]:
    """When the training of a finished member began and ended, in seconds since 1970."""
    return marker.stat().st_mtime, (part / "manifest.json").stat().st_mtime


if __name__ == "__main__":
    run(train, has_parts=True)

"""Train one member with fairseq's Trainer, resumably, with checkpoints of weights only."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.errors import PipelineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.models.configuration import model_configuration
from pipeline.fairseq_bridge.models.weights import (
    AVERAGE,
    average_weights,
    checkpoint_name,
    kept_updates,
)
from pipeline.fairseq_bridge.training.job import (
    TrainJob,
    is_first_process,
    train_in_processes,
    world_size,
)
from pipeline.fairseq_bridge.training.learning_curve import LearningCurve
from pipeline.fairseq_bridge.training.lengths import check_lengths
from pipeline.fairseq_bridge.training.settings import training_configuration
from pipeline.fairseq_bridge.training.state import resumed_iterator, save_state
from pipeline.run.files import file_sha256, write_json
from pipeline.run.progress import progress

_log = logging.getLogger(__name__)
# Warnings of torch about fairseq's code, on which users cannot act.
_SILENCED_WARNINGS = (
    ".*mismatched key_padding_mask and attn_mask.*",
    ".*'pin_memory' argument is set as true but no accelerator.*",
    ".*torch.cuda.amp.autocast.*",
)


def train_member(job: TrainJob) -> None:
    """Train one member and write its weights, their average, model.json and curve.csv to job.out.

    An interrupted training resumes from the newest complete state in job.resume and ends with the
    weights that an uninterrupted one has. Losses are in nats per token.
    """
    if int(job.train["processes"]) > 1 and world_size() == 1:
        train_in_processes(job)
        return
    with warnings.catch_warnings():
        for message in _SILENCED_WARNINGS:
            warnings.filterwarnings("ignore", message)
        # fairseq splits the path of its data at ':', so it gets a link without one.
        with TemporaryDirectory() as folder:
            link = Path(folder) / "data"
            link.symlink_to(job.data.resolve(), target_is_directory=True)
            _train(replace(job, data=link))


def _train(job: TrainJob) -> None:
    job.resume.mkdir(parents=True, exist_ok=True)
    trainer = build_trainer(job)
    check_lengths(trainer, job)
    curve = LearningCurve(trainer, job)
    iterator = resumed_iterator(trainer, curve, job)
    updates = int(job.train["updates"])
    interval = int(job.train["checkpoint_interval_updates"])
    steps = _train_steps(trainer, iterator, curve, updates, int(job.train["accumulate_batches"]))
    if is_first_process():
        remaining = updates - trainer.get_num_updates()
        steps = progress(steps, total=remaining, title=job.title, row=job.seed % 8)
    for _ in steps:
        update = trainer.get_num_updates()
        if update % int(job.train["validate_interval_updates"]) == 0 or update == updates:
            curve.validate()
        if is_first_process() and (update % interval == 0 or update == updates):
            save_state(trainer, iterator, curve, job)
    if is_first_process():
        if trainer.get_num_updates() != updates:
            raise PipelineError(
                f"{job.title}: training ended after {trainer.get_num_updates()} of {updates} "
                "updates. Run python -m stages.train again."
            )
        _write_member(job, curve)


def build_trainer(job: TrainJob) -> Any:
    """Build fairseq's Trainer for a job, with all random generators seeded."""
    torch = import_fairseq("torch")
    import numpy as np

    tasks = import_fairseq("fairseq.tasks")
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    # Its only warning, about sentences that are left out, is that of `check_lengths`.
    logging.getLogger("fairseq.tasks.fairseq_task").setLevel(logging.ERROR)
    configuration = training_configuration(job)
    np.random.seed(job.seed)  # noqa: NPY002 - fairseq draws from the global generators
    import_fairseq("fairseq.utils").set_torch_seed(job.seed)
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    if world_size() > 1:
        import_fairseq("fairseq.distributed.utils").distributed_init(configuration)
    task = tasks.setup_task(configuration.task)
    model = task.build_model(configuration.model)
    criterion = task.build_criterion(configuration.criterion)
    task.load_dataset("valid")
    import_fairseq("fairseq.logging.metrics").reset()
    return import_fairseq("fairseq.trainer").Trainer(configuration, task, model, criterion)


def _train_steps(
    trainer: Any, iterator: Any, curve: LearningCurve, updates: int, accumulate: int
) -> Iterator[None]:
    iterators = import_fairseq("fairseq.data.iterators")
    while trainer.get_num_updates() < updates:
        batches = iterator.next_epoch_itr(fix_batches_to_gpus=False, shuffle=True)
        trainer.begin_epoch(iterator.epoch)
        for samples in iterators.GroupedIterator(batches, accumulate):
            logged = trainer.train_step(samples)
            if logged is not None:
                curve.add(logged)
            yield
            if trainer.get_num_updates() >= updates:
                return
        trainer.lr_step(iterator.epoch, None)


def _write_member(job: TrainJob, curve: LearningCurve) -> None:
    checkpoints = [job.out / checkpoint_name(update) for update in kept_updates(job.train)]
    for path in checkpoints:
        shutil.copyfile(job.resume / path.name, path)
    average_weights(checkpoints[-int(job.train["average_last"]) :], job.out / AVERAGE)
    curve.write(job.out / "curve.csv")
    dictionary = job.data / f"dict.{job.target_language}.txt"
    write_json(
        job.out / "model.json",
        {
            "architecture": job.model["architecture"],
            "model": model_configuration(job.model["architecture"], job.model["settings"]),
            "source_language": job.source_language,
            "target_language": job.target_language,
            "vocabulary_sha256": file_sha256(dictionary),
            "seed": job.seed,
            "updates": int(job.train["updates"]),
            "weights": {
                path.name: file_sha256(path) for path in sorted(job.out.glob("*.safetensors"))
            },
        },
    )
    _log.info("%s: done", job.title)

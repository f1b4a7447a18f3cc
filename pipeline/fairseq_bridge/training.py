"""One member trained with fairseq's Trainer: resumable, with weights-only checkpoints."""

from __future__ import annotations

import logging
import math
import pickle
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.errors import PipelineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.configuration import (
    fairseq_configuration,
    model_configuration,
    translation_task,
)
from pipeline.fairseq_bridge.job import TrainJob
from pipeline.fairseq_bridge.processes import (
    is_first_process,
    process_settings,
    sum_over_processes,
    train_in_processes,
    untold,
    world_size,
)
from pipeline.fairseq_bridge.weights import average_weights, save_weights
from pipeline.parts import file_sha256, write_json
from pipeline.progress import progress

_log = logging.getLogger(__name__)
_KEPT_STATES = 2
# What torch tells fairseq, and a user can do nothing about.
_NOT_FOR_USERS = (
    ".*mismatched key_padding_mask and attn_mask.*",
    ".*'pin_memory' argument is set as true but no accelerator.*",
    ".*torch.cuda.amp.autocast.*",
)


def train_member(job: TrainJob) -> None:
    """Train one member and write its weights, their average, model.json and curve.csv to job.out.

    An interrupted training goes on from the newest whole state in job.resume and ends with the
    weights that it would have had undisturbed. Losses are in nats a token.
    """
    with warnings.catch_warnings():
        for message in _NOT_FOR_USERS:
            warnings.filterwarnings("ignore", message)
        # fairseq takes ':' in the path of its data for a list of paths
        with TemporaryDirectory() as folder:
            link = Path(folder) / "data"
            link.symlink_to(job.data.resolve(), target_is_directory=True)
            linked = replace(job, data=link)
            if int(job.train["processes"]) > 1 and world_size() == 1:
                train_in_processes(linked)
            else:
                _train(linked)


def _train(job: TrainJob) -> None:
    job.resume.mkdir(parents=True, exist_ok=True)
    trainer = _build_trainer(job)
    curve = _Curve(trainer, job)
    iterator = _resumed(trainer, curve, job)
    updates = int(job.train["updates"])
    interval = int(job.train["checkpoint_interval_updates"])
    shown = progress if is_first_process() else untold
    for _ in shown(
        _train_steps(trainer, iterator, curve, updates, int(job.train["accumulate_batches"])),
        total=updates - trainer.get_num_updates(),
        title=job.title,
        row=job.seed % 8,
    ):
        update = trainer.get_num_updates()
        if update % int(job.train["validate_interval_updates"]) == 0 or update == updates:
            curve.validate()
        if is_first_process() and (update % interval == 0 or update == updates):
            _save_checkpoint(trainer, iterator, curve, job)
    if is_first_process():
        _write_member(job, trainer, curve)


class _Curve:
    """Training and validation loss against updates, in nats a token."""

    def __init__(self, trainer: Any, job: TrainJob) -> None:
        self.trainer = trainer
        self.title = job.title
        self.rows: list[list[float]] = []
        self.train_losses: list[float] = []

    def add(self, logged: Mapping[str, float]) -> None:
        # fairseq logs in bits
        self.train_losses.append(float(logged.get("nll_loss", logged["loss"])) * math.log(2))

    def validate(self) -> None:
        torch = import_fairseq("torch")
        model, criterion = self.trainer.get_model(), self.trainer.get_criterion()
        model.eval()
        loss_nats = n_token = 0.0
        with torch.no_grad():
            batches = self.trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False)
            for batch in batches:
                sample, _ = self.trainer._prepare_sample(batch)
                _, _, logged = criterion(model, sample)
                loss_nats += float(logged["nll_loss"])
                n_token += float(logged["ntokens"])
        loss_nats, n_token = sum_over_processes(loss_nats, n_token)
        update = int(self.trainer.get_num_updates())
        train_loss = sum(self.train_losses) / max(1, len(self.train_losses))
        self.train_losses = []
        self.rows.append([update, train_loss, loss_nats / n_token])
        _log.info(
            "%s: update %d, loss %.3f nats a token, on dev %.3f",
            self.title, update, train_loss, loss_nats / n_token,
        )  # fmt: skip


def _build_trainer(job: TrainJob) -> Any:
    torch = import_fairseq("torch")
    import numpy as np

    tasks = import_fairseq("fairseq.tasks")
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    configuration = _configuration(job)
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


def _configuration(job: TrainJob) -> Any:
    train = job.train
    learning_rate = float(train["learning_rate"])
    return fairseq_configuration(
        task=translation_task(job.data, job.source_language, job.target_language),
        model=model_configuration(job.model["architecture"], job.model["settings"]),
        criterion={
            "_name": "label_smoothed_cross_entropy",
            "label_smoothing": train["label_smoothing"],
        },
        optimizer={
            "_name": "adam",
            "adam_betas": str(tuple(train["adam_betas"])),
            "weight_decay": train["weight_decay"],
            "lr": [learning_rate],
        },
        lr_scheduler=_schedule(train, learning_rate),
        sections={
            "common": {
                "seed": job.seed,
                "no_progress_bar": True,
                "log_format": "none",
                "fp16": train["precision"] == "fp16",
                "bf16": train["precision"] == "bf16",
            },
            "dataset": {
                "max_tokens": train["batch_tokens"],
                "max_tokens_valid": train["batch_tokens"],
                # fairseq drops the last sentences of a set that no full multiple holds
                "required_batch_size_multiple": 1,
                "num_workers": 0,
                "data_buffer_size": 0,
            },
            "optimization": {
                "max_update": train["updates"],
                "update_freq": [train["accumulate_batches"]],
                "clip_norm": train["clip_norm"],
                "lr": [learning_rate],
            },
            "distributed_training": process_settings(),
            "checkpoint": {"save_dir": str(job.resume)},
        },
    )


def _schedule(train: Mapping[str, Any], learning_rate: float) -> dict[str, Any]:
    warmup = int(train["warmup_updates"])
    if train["schedule"] == "cosine":
        return {
            "_name": "cosine",
            "warmup_updates": warmup,
            "warmup_init_lr": learning_rate / max(1, warmup),
            "lr": [learning_rate],
            "max_update": train["updates"],
            "lr_period_updates": train["updates"] - warmup,
        }
    if train["schedule"] == "fixed":
        return {"_name": "fixed", "warmup_updates": warmup, "lr": [learning_rate]}
    return {"_name": "inverse_sqrt", "warmup_updates": warmup, "lr": [learning_rate]}


def _train_steps(
    trainer: Any, iterator: Any, curve: _Curve, updates: int, accumulate: int
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


def _save_checkpoint(trainer: Any, iterator: Any, curve: _Curve, job: TrainJob) -> None:
    """Weights of this update, and the state from which training can go on; the oldest go."""
    torch = import_fairseq("torch")
    update = trainer.get_num_updates()
    save_weights(trainer.get_model().state_dict(), job.resume / f"update_{update:08d}.safetensors")
    state = {
        "model": trainer.get_model().state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "lr_scheduler": trainer.lr_scheduler.state_dict(),
        "updates": update,
        "iterator": iterator.state_dict(),
        "curve": curve.rows,
        "train_losses": curve.train_losses,
    }
    path = job.resume / f"state_{update:08d}.pt"
    torch.save(state, path.with_suffix(".writing"))
    path.with_suffix(".writing").replace(path)
    _keep_last(job.resume, "update_*.safetensors", int(job.train["keep_checkpoints"]))
    _keep_last(job.resume, "state_*.pt", _KEPT_STATES)


def _keep_last(folder: Path, pattern: str, count: int) -> None:
    for path in sorted(folder.glob(pattern))[:-count]:
        path.unlink()


def _resumed(trainer: Any, curve: _Curve, job: TrainJob) -> Any:
    """The iterator over training batches, moved to where the newest whole state left off."""
    for path in sorted(job.resume.glob("state_*.pt"), reverse=True):
        state = _read_state(path)
        if state is None:
            continue
        trainer.get_model().load_state_dict(state["model"])
        trainer.optimizer.load_state_dict(state["optimizer"])
        trainer.lr_scheduler.load_state_dict(state["lr_scheduler"])
        trainer.set_num_updates(state["updates"])
        # An iterator made for a later epoch would group the sentences into other batches.
        iterator = trainer.get_train_iterator(epoch=1)
        iterator.load_state_dict(state["iterator"])
        curve.rows, curve.train_losses = state["curve"], state["train_losses"]
        _log.info("%s: goes on after update %d", job.title, state["updates"])
        return iterator
    return trainer.get_train_iterator(epoch=1)


def _read_state(path: Path) -> dict[str, Any] | None:
    torch = import_fairseq("torch")
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        _log.warning("%s is not a whole training state and is passed over: %s", path, reason)
        return None
    return state


def _write_member(job: TrainJob, trainer: Any, curve: _Curve) -> None:
    checkpoints = sorted(job.resume.glob("update_*.safetensors"))
    wanted = int(job.train["keep_checkpoints"])
    if not checkpoints or trainer.get_num_updates() != int(job.train["updates"]):
        raise PipelineError(f"{job.title}: training must end with a checkpoint, got none")
    for path in checkpoints[-wanted:]:
        shutil.copyfile(path, job.out / path.name)
    kept = sorted(job.out.glob("update_*.safetensors"))
    average_weights(kept[-int(job.train["average_last"]) :], job.out / "average.safetensors")
    lines = ["update,train_loss_nats,valid_loss_nats"]
    lines += [f"{int(update)},{train:.6f},{valid:.6f}" for update, train, valid in curve.rows]
    (job.out / "curve.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
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
            "weights": {p.name: file_sha256(p) for p in sorted(job.out.glob("*.safetensors"))},
        },
    )
    _log.info("%s: done, %.3f nats a token on dev", job.title, curve.rows[-1][2])

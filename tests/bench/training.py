"""Training compared with fairseq-train, and two members in parallel compared with one."""

from __future__ import annotations

import logging
import random
import shutil
import subprocess
import sys
import time
import warnings
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch
from omegaconf import OmegaConf
from safetensors.torch import load_file

import stages  # noqa: F401 - sets what the processes of parts run in
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.settings import training_configuration
from pipeline.fairseq_bridge.training.trainer import build_trainer, train_member
from pipeline.run.settings import CONF, ROOT
from tests.bench.measurement import Measurement, alternating_seconds

UPDATES, VOCAB_SIZE = 40, 4000
WORKER = """
import sys
from pathlib import Path
from tests.bench.training import train
print("ready", flush=True)
for line in sys.stdin:
    train(Path(sys.argv[1]), Path(sys.argv[2]))
    print("done", flush=True)
"""


def measure() -> list[Measurement]:
    """Measure tokens per second, the ratio to fairseq, and the gain of a second process."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        folder = Path(name)
        _write_data(folder / "data")
        return [*_compared_with_fairseq(folder), _two_processes(folder)]


def train(data: Path, folder: Path) -> None:
    """Train a member of the default size for some updates from scratch."""
    shutil.rmtree(folder, ignore_errors=True)
    job = _job(data, folder)
    job.out.mkdir(parents=True)
    train_member(job)


def _compared_with_fairseq(folder: Path) -> list[Measurement]:
    data, ours, theirs = folder / "data", folder / "ours", folder / "theirs"
    model = _train_with_fairseq(data, theirs)
    train(data, ours)
    for name, tensor in load_file(ours / "out" / "average.safetensors").items():
        assert torch.equal(tensor, model.state_dict()[name]), "both must train the same weights"
    ours_seconds, theirs_seconds = alternating_seconds(
        lambda: train(data, ours), lambda: _train_with_fairseq(data, theirs)
    )
    n_token = _n_target_token(_job(data, ours))
    return [
        Measurement("tokens/s of one process", n_token / ours_seconds, "tokens/s"),
        Measurement(
            "ratio to fairseq-train, tokens/s", theirs_seconds / ours_seconds, "x", ">= 0.9"
        ),
    ]


def _two_processes(folder: Path) -> Measurement:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder / "data"), str(folder / f"member_{place}")],
            cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for place in range(2)
    ]  # fmt: skip
    for worker in workers:
        _await(worker)

    def run(count: int) -> None:
        for worker in workers[:count]:
            assert worker.stdin is not None
            print("train", file=worker.stdin, flush=True)
        for worker in workers[:count]:
            _await(worker)

    run(2)  # warm up
    one, two = alternating_seconds(lambda: run(1), lambda: run(2), clock=time.perf_counter)
    for worker in workers:
        worker.communicate()
    return Measurement("two members in parallel / one, tokens/s", 2 * one / two, "x", ">= 1.4")


def _await(worker: subprocess.Popen[str]) -> None:
    assert worker.stdout is not None
    assert worker.stdout.readline(), "a worker ended unexpectedly"


def _train_with_fairseq(data: Path, folder: Path) -> Any:
    """Run `fairseq-train` with the settings of our job and return the trained model."""
    shutil.rmtree(folder, ignore_errors=True)
    command = import_fairseq("fairseq_cli.train")
    logging.getLogger("fairseq_cli").setLevel(logging.WARNING)
    configuration = training_configuration(_job(data, folder))
    configuration.checkpoint.no_epoch_checkpoints = True
    configuration.checkpoint.no_last_checkpoints = True
    trainers: list[Any] = []

    def noted(*arguments: Any) -> Any:
        trainers.append(import_fairseq("fairseq.trainer").Trainer(*arguments))
        return trainers[0]

    with mock.patch.object(command, "Trainer", noted), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        command.main(configuration)
    return trainers[0].get_model()


def _n_target_token(job: TrainJob) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = build_trainer(job).get_train_iterator(epoch=1).next_epoch_itr()
        return sum(int(batch["ntokens"]) for batch in islice(batches, UPDATES))


def _job(data: Path, folder: Path) -> TrainJob:
    settings = OmegaConf.to_container(OmegaConf.load(CONF / "train" / "default.yaml"))
    model = OmegaConf.to_container(OmegaConf.load(CONF / "model" / "transformer_tiny.yaml"))
    assert isinstance(settings, dict)
    assert isinstance(model, dict)
    # Both implementations validate and save once, at the end.
    once = dict.fromkeys(
        ("updates", "checkpoint_interval_updates", "validate_interval_updates"), UPDATES
    )
    settings |= once | {"average_last": 1, "validate_quality_sentences": 0}
    return TrainJob(
        title="bench",
        data=data,
        out=folder / "out",
        resume=folder / "resume",
        seed=1,
        source_language="en",
        target_language="de",
        model={str(key): value for key, value in model.items()},
        train={str(key): value for key, value in settings.items()},
    )


def _write_data(folder: Path) -> None:
    words = [f"w{place}" for place in range(VOCAB_SIZE - 4)]
    chooser = random.Random(0)
    write_dictionaries(folder, ("en", "de"), dict.fromkeys(words, 1))
    for split, size in (("train", 4000), ("valid", 20)):
        side = [chooser.choices(words, k=chooser.randint(8, 16)) for _ in range(size)]
        write_split(folder, split, ("en", "de"), (side, [words[::-1] for words in side]))

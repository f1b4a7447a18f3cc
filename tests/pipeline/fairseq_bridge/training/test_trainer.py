"""Training with fairseq: reproducible, and resumable with the same result."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pipeline.errors import ConfigError, DataError, MachineError, PipelineError
from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split
from pipeline.fairseq_bridge.training import trainer as training
from pipeline.fairseq_bridge.training.job import TrainJob, torchrun
from pipeline.fairseq_bridge.training.settings import training_configuration
from pipeline.fairseq_bridge.training.trainer import build_trainer, train_member

pytestmark = pytest.mark.slow

LAYER = {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2}
TRAIN = {
    "updates": 12,
    "_target_": "pipeline.fairseq_bridge.training.train_member",
    "batch_tokens": 100,
    "accumulate_batches": 1,
    "processes": 1,
    "precision": "fp32",
    "learning_rate": 5e-3,
    "schedule": "cosine",
    "cycles": 1,
    "warmup_updates": 3,
    "optimizer": "adam",
    "adam_betas": [0.9, 0.98],
    "clip_norm": 1.0,
    "weight_decay": 0.0,
    "label_smoothing": 0.1,
    "validate_interval_updates": 6,
    "validate_quality_sentences": 7,
    "checkpoint_interval_updates": 3,
    "keep_checkpoints": 3,
    "average_last": 2,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "a b:ü,日"
    folder.mkdir()
    chooser = random.Random(0)
    words = [f"w{i}" for i in range(30)]
    write_dictionaries(folder, ("en", "de"), dict.fromkeys(words, 1))
    for split, size in (("train", 90), ("valid", 10)):
        side = [chooser.choices(words, k=chooser.randint(2, 8)) for _ in range(size)]
        write_split(folder, split, ("en", "de"), (side, [s[::-1] for s in side]))
    return folder


def _job(data: Path, out: Path, seed: int = 1, **train: Any) -> TrainJob:
    out.mkdir()
    return TrainJob(
        title="train toy",
        data=data,
        out=out,
        resume=out.with_name(f"{out.name}_resume"),
        seed=seed,
        source_language="en",
        target_language="de",
        model={
            "architecture": "transformer",
            "settings": {"encoder": LAYER, "decoder": LAYER, "dropout": 0.2},
        },
        train={**TRAIN, **train},
    )


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def uninterrupted(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    job = _job(data, tmp_path_factory.mktemp("train") / "out")
    train_member(job)
    return _bytes(job.out)


def test_a_member_has_weights_an_average_and_a_curve(uninterrupted: dict[str, bytes]) -> None:
    assert sorted(uninterrupted) == [
        "average.safetensors",
        "curve.csv",
        "model.json",
        "update_00000006.safetensors",
        "update_00000009.safetensors",
        "update_00000012.safetensors",
    ]
    curve = uninterrupted["curve.csv"].decode().splitlines()
    assert curve[0] == "update,train_loss_nats,valid_loss_nats,valid_bleu"
    assert [line.split(",")[0] for line in curve[1:]] == ["6", "12"]
    model = json.loads(uninterrupted["model.json"])
    assert model["seed"] == 1
    assert model["model"]["encoder"]["embed_dim"] == 16


def _interrupt(job: TrainJob, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Stop the training of a job after some updates, as Ctrl-C does."""

    def interrupted(items: Iterable[Any], **_: Any) -> Iterator[Any]:
        yield from islice(items, after)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training, "progress", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train_member(job)


@pytest.mark.parametrize("after", [3, 7, 11])
def test_case_19_a_resumed_training_equals_an_uninterrupted_one(
    data: Path,
    tmp_path: Path,
    uninterrupted: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    job = _job(data, tmp_path / "out")
    _interrupt(job, monkeypatch, after)
    train_member(job)
    assert _bytes(job.out) == uninterrupted


@pytest.mark.parametrize(
    ("damaged", "left", "resumed_at"),
    [
        ("state_00000009.pt", 0, 6),
        ("state_00000009.pt", 0.5, 6),
        ("update_00000009.safetensors", 0.5, 6),
        ("update_00000006.safetensors", 0, None),
    ],
)
def test_damaged_states_and_weights_are_skipped_with_a_warning(
    data: Path,
    tmp_path: Path,
    uninterrupted: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    damaged: str,
    left: float,
    resumed_at: int | None,
) -> None:
    job = _job(data, tmp_path / "out")
    _interrupt(job, monkeypatch, 11)
    path = job.resume / damaged
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    with caplog.at_level("INFO"):
        train_member(job)
    assert f"{damaged} is damaged; state state_00000009.pt is skipped" in caplog.text
    assert ("resumes after update" in caplog.text) == (resumed_at is not None)
    assert resumed_at is None or f"resumes after update {resumed_at}" in caplog.text
    assert _bytes(job.out) == uninterrupted


def test_a_resumed_training_in_mixed_precision_equals_an_uninterrupted_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, job = (_job(data, tmp_path / name, precision="bf16") for name in ("alone", "out"))
    train_member(alone)
    _interrupt(job, monkeypatch, 7)
    train_member(job)
    assert _bytes(job.out) == _bytes(alone.out)
    assert load_file(job.out / "average.safetensors").popitem()[1].dtype == torch.bfloat16


def test_fp16_needs_a_gpu(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MachineError, match=r"train\.precision: .*got fp16"):
        train_member(_job(data, tmp_path / "out", precision="fp16"))


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_precision_is_set_in_the_configuration_of_fairseq(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    common = training_configuration(_job(data, tmp_path / "out", precision=precision)).common
    assert (common.fp16, common.bf16) == (precision == "fp16", precision == "bf16")


def test_weights_at_the_ends_of_cycles_are_kept(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out", cycles=2, keep_checkpoints=1, average_last=1)
    train_member(job)
    assert [path.name for path in sorted(job.out.glob("update_*"))] == [
        "update_00000006.safetensors",
        "update_00000012.safetensors",
    ]
    average = (job.out / "average.safetensors").read_bytes()
    assert average == (job.out / "update_00000012.safetensors").read_bytes()


def test_each_cycle_starts_at_the_peak(data: Path, tmp_path: Path) -> None:
    plain = tmp_path / "data"
    plain.symlink_to(data)
    trainer = build_trainer(_job(plain, tmp_path / "out", cycles=2))
    rates = [trainer.lr_scheduler.step_update(done) for done in range(13)]
    assert rates[3] == rates[6] == rates[12] == pytest.approx(5e-3)
    assert rates[:4] == sorted(rates[:4])
    assert rates[3:6] == sorted(rates[3:6], reverse=True)
    assert rates[6:12] == sorted(rates[6:12], reverse=True)
    assert rates[9] == pytest.approx(2.5e-3)


def test_quality_on_the_dev_set_can_be_switched_off(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out", updates=6, validate_quality_sentences=0)
    train_member(job)
    header, *rows = (job.out / "curve.csv").read_text().splitlines()
    assert header == "update,train_loss_nats,valid_loss_nats"
    assert [row.split(",")[0] for row in rows] == ["6"]


def test_case_3_seeds_give_different_members_and_zero_is_a_seed(
    data: Path, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    job = _job(data, tmp_path / "out", seed=0)
    train_member(job)
    assert json.loads((job.out / "model.json").read_text())["seed"] == 0
    assert _bytes(job.out)["average.safetensors"] != uninterrupted["average.safetensors"]


def _with_long_sentences(folder: Path, **lengths: list[int]) -> Path:
    """A data folder whose sets have sentences of these lengths, without EOS."""
    folder.mkdir()
    write_dictionaries(folder, ("en", "de"), {"w": 1})
    for split, sizes in lengths.items():
        side = [["w"] * size for size in sizes]
        write_split(folder, split, ("en", "de"), (side, [s[: 1 + len(s) // 2] for s in side]))
    return folder


def test_dev_sentence_longer_than_a_batch_is_refused_before_training(tmp_path: Path) -> None:
    data = _with_long_sentences(tmp_path / "data", train=[3] * 9, valid=[3, 99, 100, 120])
    message = (
        r"train toy: dev set: 2 of 4 sentences are longer than train\.batch_tokens=100 \(the "
        r"longest has 121\)\. Increase train\.batch_tokens\."
    )
    with pytest.raises(DataError, match=message):
        train_member(_job(data, tmp_path / "out"))


def test_training_pairs_longer_than_a_batch_are_a_warning_with_their_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = _with_long_sentences(tmp_path / "data", train=[*[3] * 9, 200, 300], valid=[3, 4])
    train_member(_job(data, tmp_path / "out", updates=6))
    assert caplog.messages[0] == (
        "train toy: training pairs that are left out: 2 of 11 sentences are longer than "
        "train.batch_tokens=100 (the longest has 301). Increase train.batch_tokens."
    )
    assert not any("invalid sizes" in message for message in caplog.messages)
    data = _with_long_sentences(tmp_path / "long", train=[3] * 11, valid=[1])
    with pytest.raises(DataError, match=r"training set: all 11 sentences are longer than .*=3 "):
        train_member(_job(data, tmp_path / "none", batch_tokens=3))


def test_an_unknown_model_setting_is_named(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out")
    job.model["settings"]["encoder"] = {**LAYER, "embed_dims": 16}
    with pytest.raises(ConfigError, match=r"model\.settings\.encoder\.embed_dims.*embed_dim\?"):
        train_member(job)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "fixed"])
def test_schedules_without_cycles_train(data: Path, tmp_path: Path, schedule: str) -> None:
    job = _job(data, tmp_path / "out", schedule=schedule, updates=6)
    train_member(job)
    assert (job.out / "average.safetensors").is_file()


def test_accumulated_batches_give_one_update(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out", accumulate_batches=2, updates=6)
    train_member(job)
    assert json.loads((job.out / "model.json").read_text())["updates"] == 6


def test_two_processes_equal_one_with_accumulated_batches(data: Path, tmp_path: Path) -> None:
    two = _job(data, tmp_path / "two", processes=2, updates=6)
    alone = _job(data, tmp_path / "alone", accumulate_batches=2, updates=6)
    for job in (two, alone):
        job.model["settings"]["dropout"] = 0.0
        train_member(job)
    weights, expected = (load_file(job.out / "average.safetensors") for job in (two, alone))
    assert set(weights) == set(expected)
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=1e-4)
    again = replace(two, out=tmp_path / "again")
    again.out.mkdir()
    train_member(again)  # resumes from the last state, with no updates left
    assert _bytes(again.out) == _bytes(two.out)


def test_two_nodes_of_a_slurm_job_equal_one_process(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A stand-in for srun that runs both nodes on this machine.
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(
        "#!/bin/sh\n"
        'echo "$@" > "$SEEN"\n'
        "while case $1 in --*) true;; *) false;; esac; do shift; done\n"
        '"$@" & first=$!\n'
        '"$@" & wait $first && wait $!\n'
    )
    srun.chmod(0o755)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("socket.gethostname", lambda: "127.0.0.1")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    monkeypatch.setenv("SLURM_JOB_ID", str(os.getpid()))
    two = _job(data, tmp_path / "two", processes=2, updates=6)
    alone = _job(data, tmp_path / "alone", accumulate_batches=2, updates=6)
    for job in (two, alone):
        job.model["settings"]["dropout"] = 0.0
        train_member(job)
    weights, expected = (load_file(job.out / "average.safetensors") for job in (two, alone))
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=1e-4)
    seen = (tmp_path / "seen").read_text()
    assert seen.startswith("--nodes=2 --ntasks=2 --ntasks-per-node=1 ")
    assert "--nnodes=2 --nproc-per-node=1 " in seen


def test_processes_must_be_spread_evenly_over_nodes() -> None:
    with pytest.raises(
        ConfigError, match=r"train\.processes: must be a multiple of the job's 2 nodes \(got 3\)"
    ):
        torchrun(3, "seed_1", {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "7"})


def test_trainings_in_one_slurm_job_have_different_meeting_points() -> None:
    job = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "7"}
    first, again, other = (torchrun(2, title, job) for title in ("seed_1", "seed_1", "seed_2"))
    assert first == again
    # Ports may be equal; different names keep the trainings apart.
    assert first[-2].startswith("--rdzv-id=")
    assert first[-2] != other[-2]


def test_a_failed_process_is_reported(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out", processes=2, schedule="fixed")
    job.model["settings"]["encoder"] = {**LAYER, "attention_heads": 3}
    with pytest.raises(PipelineError, match="one of 2 training processes failed"):
        train_member(job)

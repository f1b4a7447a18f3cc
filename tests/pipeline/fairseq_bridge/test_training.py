"""Training through fairseq: reproducible, resumable, and the same after an interruption."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pipeline.errors import ConfigError, PipelineError
from pipeline.fairseq_bridge import training
from pipeline.fairseq_bridge.binarise import write_dictionaries, write_split
from pipeline.fairseq_bridge.job import TrainJob
from pipeline.fairseq_bridge.training import train_member

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
    "warmup_updates": 3,
    "adam_betas": [0.9, 0.98],
    "clip_norm": 1.0,
    "weight_decay": 0.0,
    "label_smoothing": 0.1,
    "validate_interval_updates": 6,
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
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    job = _job(data, tmp_path_factory.mktemp("train") / "out")
    train_member(job)
    return _bytes(job.out)


def test_member_holds_weights_their_average_and_its_curve(undisturbed: dict[str, bytes]) -> None:
    assert sorted(undisturbed) == [
        "average.safetensors",
        "curve.csv",
        "model.json",
        "update_00000006.safetensors",
        "update_00000009.safetensors",
        "update_00000012.safetensors",
    ]
    curve = undisturbed["curve.csv"].decode().splitlines()
    assert curve[0] == "update,train_loss_nats,valid_loss_nats"
    assert [line.split(",")[0] for line in curve[1:]] == ["6", "12"]
    model = json.loads(undisturbed["model.json"])
    assert model["seed"] == 1
    assert model["model"]["encoder"]["embed_dim"] == 16


@pytest.mark.parametrize("kept", [3, 7, 11])
def test_case_19_interrupted_training_ends_as_the_undisturbed(
    data: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    kept: int,
) -> None:
    job = _job(data, tmp_path / "out")

    def interrupted(items: Iterable[Any], **_: Any) -> Iterator[Any]:
        yield from islice(items, kept)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training, "progress", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train_member(job)
    newest = max(job.resume.glob("state_*.pt"))
    newest.with_name("state_99999999.pt").write_bytes(b"")  # a kill in the middle of writing
    train_member(job)
    assert _bytes(job.out) == undisturbed


def test_case_3_seeds_make_different_members_and_zero_is_a_seed(
    data: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    job = _job(data, tmp_path / "out", seed=0)
    train_member(job)
    assert json.loads((job.out / "model.json").read_text())["seed"] == 0
    assert _bytes(job.out)["average.safetensors"] != undisturbed["average.safetensors"]


def test_unknown_model_setting_is_named(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out")
    job.model["settings"]["encoder"] = {**LAYER, "embed_dims": 16}
    with pytest.raises(ConfigError, match=r"model\.settings\.encoder\.embed_dims.*embed_dim\?"):
        train_member(job)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "fixed"])
def test_other_schedules_train(data: Path, tmp_path: Path, schedule: str) -> None:
    job = _job(data, tmp_path / "out", schedule=schedule, updates=6)
    train_member(job)
    assert (job.out / "average.safetensors").is_file()


def test_accumulated_batches_make_one_update(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out", accumulate_batches=2, updates=6)
    train_member(job)
    assert json.loads((job.out / "model.json").read_text())["updates"] == 6


def test_two_processes_train_as_one_with_accumulated_batches(data: Path, tmp_path: Path) -> None:
    two = _job(data, tmp_path / "two", processes=2, updates=6)
    alone = _job(data, tmp_path / "alone", accumulate_batches=2, updates=6)
    for job in (two, alone):
        job.model["settings"]["dropout"] = 0.0
        train_member(job)
    ours, other = (load_file(job.out / "average.safetensors") for job in (two, alone))
    assert set(ours) == set(other)
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, other[name], atol=1e-5, rtol=1e-4)
    again = replace(two, out=tmp_path / "again")
    again.out.mkdir()
    train_member(again)  # from the last state: nothing is left to train
    assert _bytes(again.out) == _bytes(two.out)


def test_failing_process_is_told(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out", processes=2, schedule="fixed")
    job.model["settings"]["encoder"] = {**LAYER, "attention_heads": 3}
    with pytest.raises(PipelineError, match="one of 2 training processes failed"):
        train_member(job)

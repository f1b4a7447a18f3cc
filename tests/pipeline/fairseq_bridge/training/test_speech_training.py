"""Training on speech with fairseq: reproducible, and resumable with the same result."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.corpus.utterances import UtteranceFile
from pipeline.fairseq_bridge.training import trainer as training
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.speech_task import (
    SpecAugment,
    SpeechDataset,
    SpeechTask,
    SpeechTaskConfig,
)
from pipeline.fairseq_bridge.training.trainer import train_member
from tests.speech_toy import BINS, MODEL_SETTINGS, prepare_toy, write_features

pytestmark = pytest.mark.slow

TRAIN = {
    "updates": 12,
    "batch_tokens": 300,
    "accumulate_batches": 1,
    "processes": 1,
    "precision": "fp32",
    "learning_rate": 1e-2,
    "schedule": "cosine",
    "cycles": 1,
    "warmup_updates": 3,
    "optimizer": "adam",
    "adam_betas": [0.9, 0.98],
    "adadelta_rho": 0.95,
    "adadelta_eps": 1e-8,
    "clip_norm": 1.0,
    "weight_decay": 0.0,
    "label_smoothing": 0.1,
    "validate_interval_updates": 6,
    "validate_quality_sentences": 30,
    "checkpoint_interval_updates": 3,
    "keep_checkpoints": 3,
    "average_last": 2,
    "settings": {
        "spec_augment": {
            "frequency_masks": 1,
            "frequency_mask_bins": 1,
            "time_masks": 1,
            "time_mask_frames": 1,
        }
    },
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speech") / "asr"
    prepare_toy(folder, {}, train=200)
    return folder / "fairseq"


def _job(data: Path, out: Path, seed: int = 1, **settings: Any) -> TrainJob:
    out.mkdir()
    return TrainJob(
        title="train toy",
        data=data,
        out=out,
        resume=out.with_name(f"{out.name}_resume"),
        seed=seed,
        source_language="en",
        target_language="en",
        model={"architecture": "vggtransformer", "settings": MODEL_SETTINGS},
        train={**TRAIN, **settings},
        family="speech",
    )


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def uninterrupted(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    job = _job(data, tmp_path_factory.mktemp("train") / "out")
    train_member(job)
    return _bytes(job.out)


@pytest.mark.parametrize("kept", [4, 10])
def test_case_19_a_resumed_training_equals_an_uninterrupted_one(
    data: Path,
    tmp_path: Path,
    uninterrupted: dict[str, bytes],
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
    train_member(job)
    assert _bytes(job.out) == uninterrupted


def test_masks_and_seeds_give_different_members(
    data: Path, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    averages = [uninterrupted["average.safetensors"]]
    for name, changes in (("seed", {"seed": 0}), ("unmasked", {"settings": {}})):
        job = _job(data, tmp_path / name, **changes)  # type: ignore[arg-type]
        train_member(job)
        averages.append(_bytes(job.out)["average.safetensors"])
    assert len(set(averages)) == 3


def test_adadelta_reduces_the_loss(
    data: Path, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    settings = {"optimizer": "adadelta", "learning_rate": 1.0, "schedule": "fixed"}
    job = _job(data, tmp_path / "out", **settings, updates=60, checkpoint_interval_updates=30)
    train_member(job)
    losses = [
        float(row.split(",")[2]) for row in _bytes(job.out)["curve.csv"].decode().splitlines()[1:]
    ]
    assert losses[-1] < losses[0]


def test_the_curve_has_the_word_error_rate_of_the_dev_set(uninterrupted: dict[str, bytes]) -> None:
    header, *rows = uninterrupted["curve.csv"].decode().splitlines()
    assert header == "update,train_loss_nats,valid_loss_nats,valid_wer_percent"
    assert all(float(row.split(",")[3]) > 0 for row in rows)


def _dataset(data: Path, **masks: int) -> SpeechDataset:
    dictionary = load_dictionary(data / "dict.en.txt")
    return SpeechDataset(UtteranceFile(data / "train.h5"), dictionary, SpecAugment(**masks), 1)


def test_a_batch_is_padded_and_starts_with_eos(data: Path) -> None:
    dataset = _dataset(data)
    places = [int(np.argmin(dataset.sizes[:, 0])), int(np.argmax(dataset.sizes[:, 0]))]
    batch = dataset.collater([dataset[place] for place in places])
    source, length = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
    assert source.shape == (2, length.max(), BINS)
    assert length.tolist() == dataset.sizes[places, 0].tolist()
    assert not source[0, length[0] :].any()
    assert batch["net_input"]["prev_output_tokens"][:, 0].tolist() == [2, 2]
    assert batch["ntokens"] == dataset.sizes[places, 1].sum()
    assert batch["target"][1, -1] == 2
    assert batch["target"][0, -1] == 1


def test_batches_hold_utterances_of_similar_length(data: Path) -> None:
    dataset = _dataset(data)
    frames = dataset.sizes[dataset.ordered_indices(), 0]
    assert (np.diff(frames) >= 0).all()
    batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=64)
    assert sorted(np.concatenate(batches)) == list(range(len(dataset)))
    assert all(dataset.sizes[batch, 0].max() * len(batch) <= 64 for batch in batches)


def test_masks_depend_on_epoch_and_utterance(data: Path) -> None:
    masks = {"frequency_masks": 2, "frequency_mask_bins": 4}
    dataset, other = _dataset(data, **masks), _dataset(data, **masks)
    dataset.set_epoch(3)
    other[5]
    other.set_epoch(3)
    assert dataset[7]["source"].equal(other[7]["source"])
    first = dataset[7]["source"]
    later = []
    for epoch in range(4, 9):
        dataset.set_epoch(epoch)
        later.append(dataset[7]["source"])
    assert any(not first.equal(source) for source in later)


def test_features_with_another_number_of_bins_are_rejected(data: Path, tmp_path: Path) -> None:
    job = _job(data, tmp_path / "out")
    settings = {**MODEL_SETTINGS, "input_feat_per_channel": 7}
    job = TrainJob(**{**vars(job), "model": {**job.model, "settings": settings}})
    message = r"input_feat_per_channel: the features have 8 bins \(got 7\)"
    with pytest.raises(ConfigError, match=message):
        train_member(job)


def test_utterances_that_do_not_fit_are_left_out_of_training_and_rejected_in_the_dev_set(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    features = [np.zeros((length, BINS)) for length in (4, 0, 200, 8)]
    write_features(tmp_path / "train.h5", features, [[4], [4], [4], [4] * 30])
    (tmp_path / "dict.en.txt").write_bytes((data / "dict.en.txt").read_bytes())
    task = SpeechTask.setup_task(SpeechTaskConfig(data=str(tmp_path), target_lang="en"))
    task.load_dataset("train")
    everything = np.arange(4)
    with caplog.at_level(logging.WARNING):
        kept = task.filter_indices_by_size(everything, task.dataset("train"), (100, 20), True)
    assert kept.tolist() == [0]
    assert "3 of 4 utterances are left out of training: 1 to 100 frames" in caplog.text
    with pytest.raises(DataError, match=r"dev set: .*got 0 and 2 for utterance 1"):
        task.filter_indices_by_size(everything, task.dataset("train"), (100, 20))


@pytest.mark.parametrize("tokens", [[[9]], [[]]])
def test_target_tokens_outside_the_dictionary_are_rejected(
    data: Path, tmp_path: Path, tokens: list[list[int]]
) -> None:
    (tmp_path / "dict.en.txt").write_bytes((data / "dict.en.txt").read_bytes())
    task = SpeechTask.setup_task(SpeechTaskConfig(data=str(tmp_path), target_lang="en"))
    write_features(tmp_path / "train.h5", [np.zeros((4, BINS))], tokens)
    with pytest.raises(DataError, match="targets must be ids of the 9 entries"):
        task.load_dataset("train")

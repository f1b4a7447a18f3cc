"""Stages train and decode on a speech task that is learnt in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf, open_dict
from rapidfuzz.distance import Levenshtein

from pipeline.decoding.test_set import read_test_set
from pipeline.errors import DataError
from pipeline.run.settings import CONF, PipelineConfig, typed
from pipeline.store import Flag, Store, open_store, validate
from stages.decode import decode
from stages.train import train
from tests.speech_toy import BINS, MODEL_SETTINGS, prepare_toy, write_features, write_toy_manifest

OVERRIDES = [
    "experiment=laptop",
    "task=asr",
    "tracking=off",
    f"data.speech.feature_bins={BINS}",
    "ensemble.seeds=[1,2]",
    "train.updates=250",
    "train.batch_tokens=300",
    "train.learning_rate=0.01",
    "train.warmup_updates=20",
    "train.validate_interval_updates=250",
    "train.checkpoint_interval_updates=50",
    "train.keep_checkpoints=2",
    "train.average_last=1",
    "decode.beam=4",
    "decode.max_length_ratio=0.5",
    "decode.max_length_offset=2",
    "decode.self_check=true",
]
NOISES = {"commands": 0.3, "commands-noisy": 1.2}
PROMPT_FRAMES = [0, 8, 101]  # empty, two words, more than the model accepts
STATISTICS = ("/token/logprob", "/token/entropy_member", "/token/entropy_prex")


def settings(root: Path, *overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        composed = compose("pipeline", [*OVERRIDES, *overrides])
    with open_dict(composed):
        composed.io.root = str(root)
        composed.model.settings = OmegaConf.create(MODEL_SETTINGS)
    return typed(composed)


def _prepare_prompts(folder: Path) -> None:
    features = [np.zeros((length, BINS)) for length in PROMPT_FRAMES]
    write_features(folder / "english-prompts.h5", features, [], with_targets=False)
    with (folder / "english-prompts.jsonl").open("w") as file:
        for index, n_frame in enumerate(PROMPT_FRAMES):
            row = {"id": index, "source": f"{index}.wav", "reference": None, "n_frame": n_frame}
            absent = dict.fromkeys(("reference_pieces", "group", "original"))
            file.write(json.dumps(row | {"source_pieces": []} | absent) + "\n")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a root with two members that stage train has trained on the toy task."""
    root = tmp_path_factory.mktemp("speech root: 日本")
    prepared = root / "prepare" / "asr"
    prepare_toy(prepared, NOISES)
    _prepare_prompts(prepared / "test")
    roles = {*NOISES, "english-prompts"}
    absent = {str(role): "no data" for role in settings(root).task.test_sets if role not in roles}
    write_toy_manifest(prepared, absent)
    for seed in (1, 2):
        train(settings(root, f"part=seed_{seed}"))
    train(settings(root))
    return root


def decoded_store(root: Path, part: str, *overrides: str) -> Store:
    decode(settings(root, f"part={part}", *overrides))
    path = root / "decode" / "asr" / part / "store.h5"
    assert validate(path) == []
    return open_store(path)


def _wrong_words(store: Store) -> int:
    texts = store.read("/hypothesis/text")
    best = [str(texts[first]).split() for first in store.hypothesis_offset[:-1]]
    references = [str(text).split() for text in store.read("/sentence/reference")]
    return sum(Levenshtein.distance(*pair) for pair in zip(best, references, strict=True))


def test_speech_is_recognised_and_noisy_speech_has_more_errors(root: Path) -> None:
    wrong = {}
    for role in NOISES:
        with decoded_store(root, f"random_init.prex.{role}") as store:
            assert store.sources() == [f"{index:02d}.wav" for index in range(20)]
            assert np.diff(store.hypothesis_offset).tolist() == [4] * 20
            wrong[role] = _wrong_words(store)
    assert wrong["commands"] < 15
    assert wrong["commands-noisy"] > wrong["commands"]


@pytest.mark.parametrize(
    "part",
    ["random_init.expr.commands", "random_init.teacher_forcing.commands", "seed_2.beam.commands"],
)
def test_other_posterior_reference_and_single_member_are_decoded(root: Path, part: str) -> None:
    with decoded_store(root, part) as store:
        assert store.n_sentence == 20
        assert store.flag.tolist() == [0] * 20
        if "teacher_forcing" in part:
            assert [str(text) for text in store.read("/hypothesis/text")] == [
                str(text) for text in store.read("/sentence/reference")
            ]


def test_case_5_batch_size_does_not_change_the_statistics(root: Path) -> None:
    statistics: list[dict[str, Any]] = []
    for size in (1, 64):
        with decoded_store(
            root, "random_init.prex.commands-noisy", f"decode.batch_sentences={size}"
        ) as store:
            statistics.append({name: store.read(name) for name in ("/token/id", *STATISTICS)})
    alone, together = statistics
    assert np.array_equal(alone["/token/id"], together["/token/id"])
    for name in STATISTICS:
        np.testing.assert_allclose(alone[name], together[name], atol=1e-5)


def test_every_utterance_has_as_many_samples_as_asked_for(root: Path) -> None:
    sampling = ("decode=sample", "decode.beam=3", "decode.self_check=false")
    with decoded_store(root, "random_init.prex.commands", *sampling) as store:
        assert np.diff(store.hypothesis_offset).tolist() == [3] * 20


def test_case_13_utterance_that_cannot_be_decoded_is_a_flagged_row(root: Path) -> None:
    with decoded_store(root, "random_init.prex.english-prompts") as store:
        assert store.sources() == ["0.wav", "1.wav", "2.wav"]
        assert np.diff(store.hypothesis_offset).tolist() == [0, 4, 0]
        assert store.flag[0] & Flag.EMPTY_SOURCE
        assert store.flag[2] & Flag.TOO_LONG


def test_stored_distributions_agree_with_the_search(root: Path) -> None:
    with decoded_store(
        root, "random_init.prex.commands", "dump=full", "dump.dtype=float32"
    ) as store:
        full, token = store.read("/token/full_logprob"), store.read("/token/id")
        of_token = full[np.arange(len(token)), :, token]
        np.testing.assert_allclose(of_token, store.read("/token/logprob"), atol=1e-5)


def test_features_of_another_test_set_are_refused(root: Path, tmp_path: Path) -> None:
    rows = (root / "prepare" / "asr" / "test" / "commands.jsonl").read_text()
    (tmp_path / "commands.jsonl").write_text(rows)
    write_features(tmp_path / "commands.h5", [np.zeros((4, BINS))] * 19, [], with_targets=False)
    with pytest.raises(
        DataError, match=r"commands\.h5: must hold the 20 utterances of .* \(got 19\)"
    ):
        read_test_set(tmp_path / "commands.jsonl")

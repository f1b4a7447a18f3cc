"""A prepared speech task that is learnt in seconds: each word is a noisy pattern of frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.artifacts import list_files

WORDS, BINS, PATTERN_FRAMES = 5, 8, 4
_PATTERNS = np.random.default_rng(0).standard_normal((WORDS, PATTERN_FRAMES, BINS))
MODEL_SETTINGS = {
    "input_feat_per_channel": BINS,
    "position_rows": 8,
    "vggblock_enc_config": "[(8, 3, 4, 1, False)]",
    "transformer_enc_config": "((32, 4, 32, True, 0., 0., 0.),)",
    "enc_output_dim": 32,
    "tgt_embed_dim": 32,
    "conv_dec_config": "((32, 3, True),)",
    "transformer_dec_config": "((32, 4, 32, True, 0., 0., 0.),)",
    "max_source_positions": 100,
    "max_target_positions": 20,
}


def write_utterances(
    path: Path, count: int, seed: int, noise: float = 0.3, with_targets: bool = True
) -> list[list[int]]:
    """Write random utterances of 1 to 4 words; return their word ids from 0, [utterance][word]."""
    random = np.random.default_rng(seed)
    utterances = [random.integers(0, WORDS, random.integers(1, 5)).tolist() for _ in range(count)]
    clean = [np.concatenate(_PATTERNS[words]) for words in utterances]
    features = [frames + noise * random.standard_normal(frames.shape) for frames in clean]
    tokens = [[word + 4 for word in words] for words in utterances]
    write_features(path, features, tokens, with_targets)
    return utterances


def write_features(
    path: Path, features: list[Any], tokens: list[list[int]], with_targets: bool = True
) -> None:
    """Write a file of utterances in the form of stage prepare."""
    with h5py.File(path, "w") as file:
        file["/utterance/frame_offset"] = np.cumsum([0, *map(len, features)])
        file["/frame/feature"] = np.concatenate(features).astype(np.float32)
        if with_targets:
            file["/utterance/token_offset"] = np.cumsum([0, *map(len, tokens)])
            file["/token/id"] = np.concatenate(tokens).astype(np.int32)
        file.attrs["feature_bins"] = file["/frame/feature"].shape[1]


def prepare_toy(folder: Path, roles: dict[str, float], train: int = 1000) -> None:
    """Write a folder of stage prepare; each role has its noise and a test set of 20 utterances."""
    (folder / "fairseq").mkdir(parents=True)
    (folder / "test").mkdir()
    dictionary = "".join(f"▁w{word} 1\n" for word in range(WORDS))
    (folder / "fairseq" / "dict.en.txt").write_text(dictionary, encoding="utf-8")
    write_utterances(folder / "fairseq" / "train.h5", train, seed=0)
    write_utterances(folder / "fairseq" / "valid.h5", 30, seed=1)
    for seed, (role, noise) in enumerate(roles.items(), start=2):
        path = folder / "test" / f"{role}.h5"
        utterances = write_utterances(path, 20, seed, noise, with_targets=False)
        with path.with_suffix(".jsonl").open("w", encoding="utf-8") as file:
            for index, words in enumerate(utterances):
                row = {
                    "id": index,
                    "source": f"{index:02d}.wav",
                    "reference": " ".join(f"w{word}" for word in words),
                    "source_pieces": [],
                    "reference_pieces": [f"▁w{word}" for word in words],
                    "group": None,
                    "original": f"{role}:{index}",
                    "n_frame": PATTERN_FRAMES * len(words),
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_toy_manifest(folder: Path, absent: dict[str, str]) -> None:
    """Write the manifest of the prepared folder with its present files."""
    list_files(folder, "prepare", {"absent_sets": absent})

"""A prepared speech task that is learnt in seconds: a unit is a pattern of frames, with noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.artifacts import list_files

UNITS, BINS, PATTERN_FRAMES = 5, 8, 4
_PATTERNS = np.random.default_rng(0).standard_normal((UNITS, PATTERN_FRAMES, BINS))
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
    """Random utterances of 1 to 4 units; their units [utterance][unit], counted from 0."""
    random = np.random.default_rng(seed)
    said = [random.integers(0, UNITS, random.integers(1, 5)).tolist() for _ in range(count)]
    frames = [np.concatenate(_PATTERNS[units]) for units in said]
    features = [one + noise * random.standard_normal(one.shape) for one in frames]
    write_features(path, features, [[unit + 4 for unit in one] for one in said], with_targets)
    return said


def write_features(
    path: Path, features: list[Any], tokens: list[list[int]], with_targets: bool = True
) -> None:
    """A file of utterances in the form that stage prepare leaves."""
    with h5py.File(path, "w") as file:
        file["/utterance/frame_offset"] = np.cumsum([0, *map(len, features)])
        file["/frame/feature"] = np.concatenate(features).astype(np.float32)
        if with_targets:
            file["/utterance/token_offset"] = np.cumsum([0, *map(len, tokens)])
            file["/token/id"] = np.concatenate(tokens).astype(np.int32)
        file.attrs["feature_bins"] = file["/frame/feature"].shape[1]


def prepare_toy(folder: Path, roles: dict[str, float], train: int = 1000) -> None:
    """The folder of stage prepare, with test sets of 20 utterances: role -> noise of its frames."""
    (folder / "fairseq").mkdir(parents=True)
    (folder / "test").mkdir()
    units = "".join(f"▁w{unit} 1\n" for unit in range(UNITS))
    (folder / "fairseq" / "dict.en.txt").write_text(units, encoding="utf-8")
    write_utterances(folder / "fairseq" / "train.h5", train, seed=0)
    write_utterances(folder / "fairseq" / "valid.h5", 30, seed=1)
    for seed, (role, noise) in enumerate(roles.items(), start=2):
        path = folder / "test" / f"{role}.h5"
        said = write_utterances(path, 20, seed, noise, with_targets=False)
        with path.with_suffix(".jsonl").open("w", encoding="utf-8") as file:
            for place, one in enumerate(said):
                row = {
                    "id": place,
                    "source": f"{place:02d}.wav",
                    "reference": " ".join(f"w{unit}" for unit in one),
                    "source_pieces": [],
                    "reference_pieces": [f"▁w{unit}" for unit in one],
                    "n_frame": PATTERN_FRAMES * len(one),
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_toy_manifest(folder: Path, absent: dict[str, str]) -> None:
    """The manifest of a prepared folder as it is now."""
    list_files(folder, "prepare", {"absent_sets": absent})

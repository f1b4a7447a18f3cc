"""Weights on disk and their average."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from pipeline.errors import DataError
from pipeline.fairseq_bridge.models.weights import average_weights, save_weights


def _state(seed: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(5, 3, generator=generator).to(dtype)
    return {
        "encoder.embedding": embedding,
        "decoder.embedding": embedding,
        "bias": torch.randn(3, generator=generator).to(dtype),
    }


def test_tied_tensors_are_stored_once(tmp_path: Path) -> None:
    save_weights(_state(1), tmp_path / "w.safetensors")
    assert set(load_file(tmp_path / "w.safetensors")) == {"encoder.embedding", "bias"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_case_8_average_is_exact_and_repeats_bit_by_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    paths = []
    for seed in range(3):
        paths.append(tmp_path / f"{seed}.safetensors")
        save_weights(_state(seed, dtype), paths[-1])
    average_weights(paths, tmp_path / "a.safetensors")
    average_weights(paths, tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    average = load_file(tmp_path / "a.safetensors")
    for name in ("encoder.embedding", "bias"):
        by_hand = np.mean([_state(seed, dtype)[name].double().numpy() for seed in range(3)], axis=0)
        assert average[name].dtype == dtype
        np.testing.assert_array_equal(average[name].numpy(), torch.tensor(by_hand).to(dtype))


def test_average_of_one_checkpoint_is_that_checkpoint(tmp_path: Path) -> None:
    save_weights(_state(1), tmp_path / "w.safetensors")
    average_weights([tmp_path / "w.safetensors"] * 2, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "w.safetensors").read_bytes()


def test_checkpoints_of_different_models_are_not_averaged(tmp_path: Path) -> None:
    save_weights(_state(1), tmp_path / "w.safetensors")
    save_weights({"bias": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(
        DataError, match=r"other\.safetensors: tensors differ from those of .*w\.safetensors"
    ):
        average_weights(
            [tmp_path / "w.safetensors", tmp_path / "other.safetensors"], tmp_path / "a"
        )

"""Weights on disk: safetensors, tied tensors once, the same bytes for the same values."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import DataError, MachineError

if TYPE_CHECKING:
    import torch


DAMAGE: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    AssertionError,
    AttributeError,
    TypeError,
    struct.error,
)


def save_weights(state: dict[str, torch.Tensor], path: Path) -> None:
    """Write a state dict; of tensors that share memory only the first name is kept.

    Raises MachineError where the file cannot be written, as on a full disk.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    first_name: dict[tuple[int, tuple[int, ...]], str] = {}
    unique = {}
    for name, tensor in state.items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and key in first_name:
            continue
        first_name[key] = name
        unique[name] = tensor.detach().cpu().contiguous()
    temporary = path.with_name(f".{path.name}.writing")
    try:
        save_file(unique, temporary)
    except SafetensorError as error:
        temporary.unlink(missing_ok=True)
        raise MachineError(f"{path} must be writable and have room, got '{error}'") from error
    temporary.chmod(0o644)  # safetensors makes files that only their owner can read
    temporary.replace(path)


def average_weights(paths: Sequence[Path], out: Path) -> None:
    """Write the mean of weight files, reading one at a time; sums in float64, stored as read.

    Raises DataError naming the two files whose tensors have other names, shapes or types.
    """
    import torch
    from safetensors.torch import load_file

    first = load_file(paths[0])
    sums = {name: tensor.to(torch.float64) for name, tensor in first.items()}
    for path in paths[1:]:
        state = load_file(path)
        if {name: (t.shape, t.dtype) for name, t in state.items()} != {
            name: (t.shape, t.dtype) for name, t in first.items()
        }:
            raise DataError(
                f"checkpoints to average must hold the same tensors, {path} and {paths[0]} differ"
            )
        for name, tensor in state.items():
            sums[name] += tensor
    save_weights(
        {name: (total / len(paths)).to(first[name].dtype) for name, total in sums.items()}, out
    )

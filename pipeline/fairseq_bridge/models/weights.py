"""Files of weights of a training run: their names, and how to write, read and average them.

Files are safetensors. Tied tensors are stored once, and equal values give equal bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import DataError, MachineError

if TYPE_CHECKING:
    import torch

AVERAGE = "average.safetensors"
_REMEDY = "Run the stage that wrote the file again."
_CHECKPOINT = re.compile(r"update_(\d+)\.safetensors")
# Exceptions that reading a damaged file may raise.
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


def kept_updates(train: Mapping[str, Any]) -> list[int]:
    """Updates whose checkpoints a training run keeps, oldest first.

    These are the last `keep_checkpoints` updates and, if there are several cycles, their ends.
    """
    updates, cycles = int(train["updates"]), int(train["cycles"])
    interval = int(train["checkpoint_interval_updates"])
    saved = [*range(interval, updates, interval), updates]
    last = saved[-int(train["keep_checkpoints"]) :]
    cycle_ends = [cycle * updates // cycles for cycle in range(1, cycles)]
    return sorted({*last, *cycle_ends})


def checkpoint_name(update: int) -> str:
    """File name of the checkpoint after an update."""
    return f"update_{update:08d}.safetensors"


def checkpoint_update(name: str) -> int | None:
    """The update of a checkpoint's file name, None for other names."""
    match = _CHECKPOINT.fullmatch(name)
    return None if match is None else int(match[1])


def save_weights(state: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a state dict; tensors that share memory are stored once, under the first name.

    Raises MachineError if the file cannot be written, for example because the disk is full.
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
        raise MachineError(
            f"{path}: could not be written ({error}). Check permissions and free disk space."
        ) from error
    temporary.chmod(0o644)  # safetensors makes files that only their owner can read
    temporary.replace(path)


def load_weights(model: Any, path: Path) -> None:
    """Load a safetensors file into a model; tied tensors may be stored under any of their names.

    Raises DataError if the file is damaged, lacks a tensor, has an unknown tensor or one of another
    shape, or holds a value that is not finite.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path}: damaged safetensors file ({error}). {_REMEDY}") from None
    state = model.state_dict()
    stored_at = {state[name].data_ptr() for name in tensors if name in state}
    missing = [name for name in state if name not in tensors]
    untied = [name for name in missing if state[name].data_ptr() not in stored_at]
    unknown = [name for name in tensors if name not in state]
    if untied or unknown:
        raise DataError(
            f"{path}: must hold exactly the tensors of the model "
            f"(missing [{', '.join(untied)}], unknown [{', '.join(unknown)}]). {_REMEDY}"
        )
    for name, tensor in tensors.items():
        if tensor.shape != state[name].shape:
            raise DataError(
                f"{path}: {name} must have shape {tuple(state[name].shape)} "
                f"(got {tuple(tensor.shape)}). {_REMEDY}"
            )
    check_finite(tensors, path)
    model.load_state_dict(tensors, strict=False)


def parameter_count(paths: Iterable[Path]) -> int | None:
    """Return the number of values in safetensors files, from their headers; tied ones count once.

    None if a file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    count = 0
    for path in paths:
        try:
            with safe_open(path, framework="np") as file:
                count += sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
        except (OSError, SafetensorError):
            return None
    return count


def check_finite(tensors: Mapping[str, torch.Tensor], path: Path, remedy: str = _REMEDY) -> None:
    """Raise DataError, naming `path`, the file of these tensors, if one has NaN or infinity."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise DataError(f"{path}: {name} must be finite (got NaN or infinity). {remedy}")


def average_weights(paths: Sequence[Path], out: Path) -> None:
    """Write the mean of weight files, read one at a time; sums are float64, the result as read.

    Raises DataError, naming two files, if their tensors differ in name, shape or type.
    """
    import torch
    from safetensors.torch import load_file

    first = load_file(paths[0])
    sums = {name: tensor.to(torch.float64) for name, tensor in first.items()}
    for path in paths[1:]:
        state = load_file(path)
        if _forms(state) != _forms(first):
            raise DataError(
                f"{path}: tensors differ from those of {paths[0]}. "
                "Average checkpoints of one training run."
            )
        for name, tensor in state.items():
            sums[name] += tensor
    save_weights(
        {name: (total / len(paths)).to(first[name].dtype) for name, total in sums.items()}, out
    )


def _forms(state: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in state.items()}

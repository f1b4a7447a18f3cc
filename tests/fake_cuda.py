"""Tensors without data on a device that does not exist: FakeTensorMode for a torch without CUDA."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CUDA = torch.device("cuda", 0)
_aten: Any = torch.ops.aten
_READS = (_aten._local_scalar_dense.default, _aten.item.default, _aten.is_nonzero.default)


@contextmanager
def fake_cuda(condition: bool = True) -> Iterator[None]:
    """Tensors have a shape, a type and a device, which may be `CUDA`, and no data.

    An operation on tensors of two devices raises FakeTensorDeviceMismatchError. A question that
    only data could answer, such as whether there is padding, is answered with `condition`.
    """
    with FakeTensorMode(), _Conditions(condition), _Bindings():
        yield


def on_fake_cuda(module: Any) -> Any:
    """A module whose weights are on the device; `Module.to` needs CUDA."""
    for part in module.modules():
        for weights in (part._parameters, part._buffers):
            for name, value in weights.items():
                if value is not None:
                    weights[name] = torch.empty(value.shape, dtype=value.dtype, device=CUDA)
    return module


def steps_of(model: Any, source: torch.Tensor) -> torch.Tensor:
    """Encode three sentences, take steps with a new order of rows between them, and force.

    Returns the logits of the last step, of four rows.
    """

    def prefix(n_row: int, n_token: int) -> torch.Tensor:
        return torch.full((n_row, len(model.start) + n_token), model.eos)

    with torch.inference_mode():
        state = model.encode(source)
        model.step(state, prefix(3, 0))
        state = model.reorder(state, torch.arange(3).repeat_interleave(2), 2)
        model.step(state, prefix(6, 1))
        state = model.reorder(state, torch.tensor([0, 1, 5, 4]), 2)
        logits: torch.Tensor = model.step(state, prefix(4, 2))
        forced = list(model.force(source, prefix(3, 2), [3, 3, 2]))
    assert {each.device for each in forced} == {CUDA}
    return logits


class PeakMemory(TorchDispatchMode):
    """Counts the bytes of the tensors on the device that are made in this context.

    What an operation needs while it runs is not counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bytes_of: dict[int, int] = {}
        self.peak_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = {_storage(leaf) for leaf in tree_leaves((args, kwargs)) if _is_cuda(leaf)}
        result = func(*args, **kwargs or {})
        for leaf in tree_leaves(result):
            if _is_cuda(leaf) and _storage(leaf) not in {*known, *self._bytes_of}:
                storage = leaf.untyped_storage()
                self._bytes_of[_storage(leaf)] = storage.nbytes()
                weakref.finalize(storage, self._bytes_of.pop, _storage(leaf), None)
        self.peak_bytes = max(self.peak_bytes, sum(self._bytes_of.values()))
        return result


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _is_cuda(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_cuda


class _Conditions(TorchDispatchMode):
    """Answers what only data could tell."""

    def __init__(self, condition: bool) -> None:
        super().__init__()
        self.condition = condition

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READS and args[0].dtype == torch.bool and args[0].constant is None:
            return self.condition
        return func(*args, **kwargs or {})


class _Bindings(TorchFunctionMode):
    """Calls the operation itself where Python's binding first selects a device, which needs CUDA.

    Only views can be assigned to, not elements that a tensor selects.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__getitem__:
            return _item(*args)
        if func is torch.Tensor.__setitem__:
            tensor, index, value = args
            if not isinstance(value, torch.Tensor):
                value = torch.full((), value, dtype=tensor.dtype, device=tensor.device)
            return _aten.copy_(_item(tensor, index), value)
        if func is torch.Tensor.contiguous:
            return _aten.contiguous(args[0])
        if func is torch.Tensor.__invert__:
            return torch.bitwise_not(args[0])
        if func is torch.tensor and kwargs and kwargs.get("device") == CUDA:
            like = torch.tensor(args[0], dtype=kwargs.get("dtype"))
            return torch.empty(like.shape, dtype=like.dtype, device=CUDA)
        if func is torch._shape_as_tensor:  # fairseq reads the numbers
            return args[0].shape
        return func(*args, **kwargs or {})


def _item(tensor: Any, index: Any) -> Any:
    index = index if isinstance(index, tuple) else (index,)
    if any(part is ... for part in index):
        place = next(place for place, part in enumerate(index) if part is ...)
        n_given = sum(part is not None for part in index) - 1
        index = (*index[:place], *[slice(None)] * (tensor.dim() - n_given), *index[place + 1 :])
    selected: list[Any] = []
    for part in index:
        dim = len(selected)
        if isinstance(part, int):
            tensor = tensor.select(dim, part)
            continue
        if part is None:
            tensor = tensor.unsqueeze(dim)
        elif isinstance(part, slice):
            tensor = _aten.slice(tensor, dim, part.start, part.stop, part.step or 1)
        selected.append(part if isinstance(part, torch.Tensor) else None)
    is_selected = any(part is not None for part in selected)
    return _aten.index(tensor, selected) if is_selected else tensor

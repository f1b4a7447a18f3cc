"""A pretended GPU: tensors say that they are on cuda, compute on the CPU, and count what leaves."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_METHODS: Any = torch.Tensor
_READS = [
    getattr(_METHODS, name)
    for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")
]
# As on a GPU, these take tensors of both devices.
_TAKES_BOTH = (_METHODS.to, _METHODS.cpu, _METHODS.copy_, _METHODS.__getitem__)


class _OnCuda(torch.Tensor):
    """A tensor that says it is on a GPU; `held` has its values."""

    held: torch.Tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: a tensor on cuda, used outside of PretendedCuda")


class PretendedCuda(TorchFunctionMode):
    """A context in which the device cuda exists.

    An operation on tensors of two devices raises RuntimeError, except for scalars, as on a GPU.
    to_host: bytes of each copy from the device to the host, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.to_host: list[int] = []

    def moved(self, module: Any) -> Any:
        """A module whose weights are on the device; `Module.to` needs CUDA."""
        for part in module.modules():
            for weights in (part._parameters, part._buffers):
                for name, value in weights.items():
                    if value is not None:
                        weights[name] = _wrapped(value.detach())
        return module

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == _METHODS.device.__get__:
            return CUDA if isinstance(args[0], _OnCuda) else _CPU
        if func is torch._shape_as_tensor:  # always on the CPU
            return torch.tensor(args[0].shape)
        leaves, spec = tree_flatten((args, kwargs or {}))
        wrapped = {id(leaf.held): leaf for leaf in leaves if isinstance(leaf, _OnCuda)}
        if wrapped and func is _METHODS.numpy:
            raise TypeError("a tensor on cuda cannot become an array")
        if wrapped and func not in _TAKES_BOTH and any(map(_is_on_host, leaves)):
            raise RuntimeError(f"{func}: tensors on cuda and on the CPU")
        goes_to = _destination(func, leaves, CUDA if wrapped else _CPU)
        plain = [_CPU if _is_device(leaf) else getattr(leaf, "held", leaf) for leaf in leaves]
        args, kwargs = tree_unflatten(plain, spec)
        result = func(*args, **kwargs)
        if wrapped and (func in _READS or goes_to == _CPU):
            values = args[0] if func in _READS else result
            self.to_host.append(values.numel() * values.element_size())
        if goes_to == _CPU:
            return tree_map(_copied, result) if wrapped else result
        # What is changed in place stays the same object.
        return tree_map(
            lambda leaf: wrapped[id(leaf)] if id(leaf) in wrapped else _wrapped(leaf), result
        )


def _destination(func: Any, leaves: list[Any], present: torch.device) -> torch.device:
    """The device of the result of an operation."""
    if func is _METHODS.cpu or func in _READS:
        return _CPU
    if func is _METHODS.type_as:
        return leaves[1].device
    chosen = [_CPU if torch.device(leaf) == _CPU else CUDA for leaf in leaves if _is_device(leaf)]
    return chosen[0] if chosen else present


def _is_device(leaf: Any) -> bool:
    is_name = isinstance(leaf, str) and leaf in ("cpu", "cuda", "cuda:0")
    return is_name or isinstance(leaf, torch.device)


def _is_on_host(leaf: Any) -> bool:
    is_tensor = isinstance(leaf, torch.Tensor) and not isinstance(leaf, _OnCuda)
    return is_tensor and leaf.dim() > 0 and leaf.numel() > 0


def _copied(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def _wrapped(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    with torch._C.DisableTorchFunction():
        tensor: Any = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            _OnCuda, leaf.shape, dtype=leaf.dtype, device=CUDA, strides=leaf.stride()
        )
    tensor.held = leaf
    return tensor

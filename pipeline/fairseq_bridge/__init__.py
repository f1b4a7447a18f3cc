"""The only package that imports fairseq, and the one way in which it is imported."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# What fairseq takes, at its import, for a task, a criterion and a printed table that nothing here
# uses: a second or more of every process.
_NOT_NEEDED = {
    "sklearn": ("metrics",),
    "sklearn.metrics": ("f1_score", "matthews_corrcoef"),
    "scipy.stats": ("pearsonr", "spearmanr"),
    "tabulate": ("tabulate",),
}


def import_fairseq(module: str = "fairseq") -> ModuleType:
    """Import fairseq, or a module of it, with the root logger left as it was found.

    fairseq's tasks call `logging.basicConfig` at import and log what they lack: a handler that is
    already there makes the first a no-op, a higher level hides the second. The deprecated calls
    that fairseq makes at import (`torch.jit.script`, old Hydra API) are not for a user to mend and
    are not shown. What of `_NOT_NEEDED` and of torch's compiler is not loaded yet, stays so.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.addHandler(logging.NullHandler())
    root.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings(), _not_needed_left_out():
            warnings.simplefilter("ignore", DeprecationWarning)
            imported = importlib.import_module(module)
        _leave_compiler_out()
        return imported
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@contextmanager
def _not_needed_left_out() -> Iterator[None]:
    """While fairseq is imported for the first time, empty modules stand in for `_NOT_NEEDED`."""
    is_loaded = "fairseq" in sys.modules
    left_out = () if is_loaded else _NOT_NEEDED.keys() - sys.modules.keys()
    for name in left_out:
        sys.modules[name] = empty = ModuleType(name)
        vars(empty).update(dict.fromkeys(_NOT_NEEDED[name]))
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]


def _leave_compiler_out() -> None:
    """Keep torch from importing its compiler, which nothing here uses: a second of a process.

    It would at the first call of an optimiser's methods, to mark them as not to be compiled, and at
    the first key padding mask, whose shape it checks by the compiler's means.
    """
    from torch.nn import functional
    from torch.optim import Optimizer

    for method in vars(Optimizer).values():
        marked = getattr(method, "__wrapped__", None)
        if marked is not None:
            vars(marked)["__dynamo_disable"] = marked
    vars(functional)["_check_key_padding_mask"] = _check_shape


def _check_shape(mask: Tensor, n_source: int, n_sentence: int) -> None:
    expected = (n_sentence, n_source)
    assert mask.shape == expected, f"a key padding mask must be {expected}, got {tuple(mask.shape)}"

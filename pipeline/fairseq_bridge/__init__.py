"""The only package that imports fairseq, and the one way in which it is imported."""

from __future__ import annotations

import importlib
import logging
import warnings
from types import ModuleType


def import_fairseq(module: str = "fairseq") -> ModuleType:
    """Import fairseq, or a module of it, with the root logger left as it was found.

    fairseq's tasks call `logging.basicConfig` at import and log what they lack: a handler that is
    already there makes the first a no-op, a higher level hides the second. The deprecated calls
    that fairseq makes at import (`torch.jit.script`, old Hydra API) are not for a user to mend and
    are not shown.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.addHandler(logging.NullHandler())
    root.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(module)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)

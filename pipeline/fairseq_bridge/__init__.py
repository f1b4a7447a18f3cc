"""The only package that imports fairseq."""

from __future__ import annotations

import importlib
import logging
import warnings
from types import ModuleType


def import_fairseq(module: str = "fairseq") -> ModuleType:
    """Import fairseq or one of its modules without its side effects on logging and warnings.

    At import, fairseq configures the root logger and logs which optional packages are missing. The
    root logger is restored afterwards. Deprecation warnings at import (`torch.jit.script`, old
    Hydra API) are silenced, because users cannot act on them.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.addHandler(logging.NullHandler())  # logging.basicConfig does nothing if there is a handler
    root.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(module)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)

"""Compiling functions to machine code, and keeping the code until a source changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit

from pipeline.run.files import digest, file_sha256

_PACKAGE = Path(__file__).parent


def machine_code(function: Callable[..., Any], **options: object) -> Callable[..., Any]:
    """Compile by numba with its options; kept beside the source or in the user's cache."""
    code: Callable[..., Any]
    try:
        code = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written
        code = njit(**options)(function)
    return code


def cache_folder(package: Path) -> Path:
    """Where machine code of a package is kept: a folder of its own for each state of the sources.

    numba itself looks only at the file of a function, and would keep what is compiled into it from
    other files.
    """
    sources = sorted(package.rglob("*.py"))
    state = digest(*([str(one.relative_to(package)), file_sha256(one)] for one in sources))
    user = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    home = package if os.access(package, os.W_OK) else user / "sequence-uncertainty"
    return home / "__pycache__" / f"machine_code-{state[:16]}"


config.CACHE_DIR = config.CACHE_DIR or str(cache_folder(_PACKAGE))

"""Compiling a function to machine code, and keeping the code where one can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def machine_code(function: Callable[..., Any], **options: object) -> Callable[..., Any]:
    """Compile by numba with its options; kept beside the source or in the user's cache."""
    code: Callable[..., Any]
    try:
        code = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written
        code = njit(**options)(function)
    return code

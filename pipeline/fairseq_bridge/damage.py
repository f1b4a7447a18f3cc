"""What torch's reader of pickled files raises where one is damaged, whatever rule it breaks."""

from __future__ import annotations

import struct

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

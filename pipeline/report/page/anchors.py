"""Anchors: the names of the places on the page that one can link to."""

from __future__ import annotations

import re
from collections.abc import Sequence


def slug(text: str) -> str:
    """The text as part of an anchor: lower-case letters and digits joined by hyphens."""
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")


def unique_anchors(anchors: Sequence[str]) -> list[str]:
    """The anchors, of which repeated ones get a number; empty ones stay empty."""
    seen: dict[str, int] = {}
    unique = []
    for anchor in anchors:
        seen[anchor] = seen.get(anchor, 0) + 1
        unique.append(anchor if seen[anchor] == 1 or not anchor else f"{anchor}-{seen[anchor]}")
    return unique

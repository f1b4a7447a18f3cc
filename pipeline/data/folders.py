"""List the files of the user's folders."""

from __future__ import annotations

from pathlib import Path

# macOS keeps metadata of a file beside it in a file of this name; it has the same suffix.
_MACOS_PREFIX = "._"


def matching(folder: Path, pattern: str) -> list[Path]:
    """List what matches a pattern of `Path.glob`, sorted, without the `._*` files of macOS."""
    paths = folder.glob(pattern)
    return sorted(path for path in paths if not path.name.startswith(_MACOS_PREFIX))

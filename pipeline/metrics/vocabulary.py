"""The sub-word units behind token ids, from a dictionary of fairseq."""

from __future__ import annotations

from pathlib import Path

# fairseq's own symbols, whose ids come before those of the file.
SPECIAL_UNITS = ("<s>", "<pad>", "</s>", "<unk>")


def read_units(path: Path) -> list[str]:
    """The unit of every token id: [vocab]; `path` is a dict.{language}.txt."""
    with path.open(encoding="utf-8", newline="\n") as file:
        # A unit holds no space; its count, and perhaps a flag, follow it.
        return [*SPECIAL_UNITS, *(line.split(" ")[0] for line in file)]

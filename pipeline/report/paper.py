"""The paper's own numbers, from the file of its result tables."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.metrics.cell import KEY_COLUMNS, Key

_FILE = Path(__file__).with_name("paper_results.csv")


@dataclass(frozen=True)
class PaperCell:
    """A number that the paper prints, with its spread where it prints one.

    A table beyond the paper has cells of this kind without a value.
    """

    key: Key
    value: float | None
    spread: float | None


def paper_cells(label: str) -> list[PaperCell]:
    """The cells of one of the paper's tables in its order; empty for a label it does not have."""
    return _tables().get(label, [])


@cache
def _tables() -> dict[str, list[PaperCell]]:
    tables: dict[str, list[PaperCell]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = Key(*(row[name] for name in KEY_COLUMNS))
            # The paper itself prints NA for some spreads.
            spread = None if row["spread"] in ("", "NA") else float(row["spread"])
            tables.setdefault(row["table"], []).append(PaperCell(key, float(row["value"]), spread))
    return tables

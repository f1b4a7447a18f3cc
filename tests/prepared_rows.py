"""Read the rows of a test set that stage prepare wrote."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.data.text.test_sets import Row


def read_rows(path: Path) -> list[Row]:
    """Return all rows of a file {role}.jsonl."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [Row(**json.loads(line)) for line in file]

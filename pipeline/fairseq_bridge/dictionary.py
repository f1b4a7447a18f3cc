"""fairseq's dictionaries: the unit behind each token id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq


def load_dictionary(path: Path) -> Any:
    """fairseq's Dictionary of a dict.{lang}.txt file: its own four symbols, then a unit a line.

    Raises DataError where the file is none, as where it names a unit twice.
    """
    dictionary = import_fairseq("fairseq.data").Dictionary()
    try:
        with path.open(encoding="utf-8") as file:
            dictionary.add_from_file(file)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).partition(". Duplicate words")[0].split())
        raise DataError(f"{path} must be a dictionary of fairseq's: {reason}") from None
    return dictionary

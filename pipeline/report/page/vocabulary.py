"""The sub-word units behind the token ids of a store, from the dictionary of prepare."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import DataError
from pipeline.metrics.vocabulary import SPECIAL_UNITS, read_units


def read_pieces(path: Path, vocab_size: int) -> list[str]:
    """The unit of every token id: [vocab].

    Raises DataError if there is no dictionary, or one of other units than the store counts.
    """
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    pieces = read_units(path)
    if len(pieces) != vocab_size:
        wanted, found = (size - len(SPECIAL_UNITS) for size in (vocab_size, len(pieces)))
        raise DataError(
            f"{path} must list the {wanted} units of the decode store, "
            f"got {found}: run python -m stages.prepare and stages.decode"
        )
    return pieces

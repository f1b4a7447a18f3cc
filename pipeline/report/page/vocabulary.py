"""The sub-word units behind the token ids of a store, from the dictionary of prepare."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import DataError

# The ids that fairseq gives before those of the file, in its order.
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def read_pieces(path: Path, vocab_size: int) -> list[str]:
    """The unit of every token id: [vocab].

    Raises DataError if there is no dictionary, or one of other units than the store counts.
    """
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    with path.open(encoding="utf-8", newline="\n") as file:
        # A unit holds no space; its count, and perhaps a flag, follow it.
        pieces = [*_SPECIAL, *(line.split(" ")[0] for line in file)]
    if len(pieces) != vocab_size:
        raise DataError(
            f"{path} must list the {vocab_size - len(_SPECIAL)} units of the decode store, "
            f"got {len(pieces) - len(_SPECIAL)}: run python -m stages.prepare and stages.decode"
        )
    return pieces

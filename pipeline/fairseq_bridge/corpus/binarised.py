"""Parallel sub-word text in fairseq's own binarised form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


Pieces = Sequence[str]


def write_dictionaries(folder: Path, languages: Iterable[str], counts: Mapping[str, int]) -> None:
    """Write `dict.{lang}.txt`, the same joint dictionary for every language.

    `counts`: piece -> its count in the training text, in the order of the dictionary; fairseq puts
    its own four symbols in front. Raises DataError where a piece is one of those.
    """
    dictionary = import_fairseq("fairseq.data").Dictionary()
    reserved = [piece for piece in counts if piece in dictionary]
    if reserved:
        raise DataError(f"a sub-word unit must not be one of fairseq's symbols, got {reserved[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{piece} {count}\n" for piece, count in counts.items())
    for language in languages:
        path = folder / f"dict.{language}.txt"
        path.write_text(text, encoding="utf-8", newline="\n")


def write_split(
    folder: Path,
    split: str,
    languages: tuple[str, str],
    sides: tuple[Iterable[Pieces], Iterable[Pieces]],
) -> None:
    """Write `{split}.{src}-{tgt}.{lang}.bin` and `.idx` (mmap) of both sides.

    `sides`: [sentence][token] pieces of source and target; the dictionaries must be there. A piece
    that is not in the dictionary becomes <unk>; every sentence ends in EOS. Raises DataError where
    the sides have unequal counts.
    """
    import torch

    indexed_dataset = import_fairseq("fairseq.data.indexed_dataset")
    dictionary_class = import_fairseq("fairseq.data").Dictionary
    counts: list[int] = []
    for language, side in zip(languages, sides, strict=True):
        counts.append(0)
        dictionary = dictionary_class.load(str(folder / f"dict.{language}.txt"))
        prefix = folder / f"{split}.{'-'.join(languages)}.{language}"
        builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", len(dictionary))
        for pieces in side:
            tokens = [dictionary.index(piece) for piece in pieces]
            builder.add_item(torch.tensor([*tokens, dictionary.eos()], dtype=torch.int32))
            counts[-1] += 1
        builder.finalize(f"{prefix}.idx")
    if counts[0] != counts[1]:
        raise DataError(
            f"{split} must have equally many source and target sentences, "
            f"got {counts[0]} and {counts[1]}"
        )

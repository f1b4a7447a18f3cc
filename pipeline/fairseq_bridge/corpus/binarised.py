"""Parallel text in fairseq's binarised format, and its dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq

Subwords = Sequence[str]


def load_dictionary(path: Path) -> Any:
    """Load a fairseq Dictionary: fairseq's four special symbols, then one subword per line.

    Raises DataError if the file is not a dictionary, for example because it has a duplicate entry.
    """
    dictionary = dictionary_of(())
    try:
        with path.open(encoding="utf-8") as file:
            dictionary.add_from_file(file)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).partition(". Duplicate words")[0].split())
        raise DataError(
            f"{path}: not a fairseq dictionary ({reason}). Give a dict.txt with one entry per line."
        ) from None
    return dictionary


def dictionary_of(subwords: Iterable[str]) -> Any:
    """A fairseq Dictionary of fairseq's four special symbols and these subwords."""
    dictionary = import_fairseq("fairseq.data").Dictionary()
    for subword in subwords:
        dictionary.add_symbol(subword)
    return dictionary


def write_dictionaries(folder: Path, languages: Iterable[str], counts: Mapping[str, int]) -> None:
    """Write `dict.{lang}.txt`, the same joint dictionary for every language.

    `counts` maps each subword to its count in the training text, in dictionary order; fairseq
    prepends its four special symbols. Raises DataError if a subword is one of those symbols.
    """
    special = dictionary_of(())
    reserved = [subword for subword in counts if subword in special]
    if reserved:
        raise DataError(
            f"{folder}: a subword must not be one of fairseq's special symbols (got {reserved[0]})."
        )
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{subword} {count}\n" for subword, count in counts.items())
    for language in languages:
        path = folder / f"dict.{language}.txt"
        path.write_text(text, encoding="utf-8", newline="\n")


def write_split(
    folder: Path,
    split: str,
    languages: tuple[str, str],
    sides: tuple[Iterable[Subwords], Iterable[Subwords]],
) -> None:
    """Write `{split}.{src}-{tgt}.{lang}.bin` and `.idx` (mmap) for source and target.

    `sides` holds the subwords [sentence][token] of source and target. The dictionaries must exist
    in `folder`. Subwords outside the dictionary become <unk>, and every sentence ends with EOS.
    Raises DataError if source and target have different numbers of sentences.
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
        for subwords in side:
            tokens = [dictionary.index(subword) for subword in subwords]
            builder.add_item(torch.tensor([*tokens, dictionary.eos()], dtype=torch.int32))
            counts[-1] += 1
        builder.finalize(f"{prefix}.idx")
    if counts[0] != counts[1]:
        raise DataError(
            f"{folder / split}: source and target must have the same number of sentences "
            f"(got {counts[0]} and {counts[1]})."
        )

"""Parallel text in fairseq's binarised format, and its dictionaries.

Writing needs neither fairseq nor torch, whose import takes four fifths of the time of a small stage
prepare. Tests compare the files with those that fairseq writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq

Subwords = Sequence[str]
SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")  # the first entries of every dictionary
_EOS, _UNKNOWN = SPECIAL_SYMBOLS.index("</s>"), SPECIAL_SYMBOLS.index("<unk>")
_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1  # of the index of fairseq's memory-mapped datasets
# Largest vocabulary, type of the token ids, and the code of the type in the index.
_ID_TYPES = ((65_499, np.uint16, 8), (2**32 - 2, np.uint32, 9))


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
    reserved = [subword for subword in counts if subword in SPECIAL_SYMBOLS]
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
    counts = []
    for language, side in zip(languages, sides, strict=True):
        with (folder / f"dict.{language}.txt").open(encoding="utf-8") as file:
            symbols = [*SPECIAL_SYMBOLS, *(line.rpartition(" ")[0] for line in file)]
        ids = {symbol: index for index, symbol in enumerate(symbols)}
        prefix = folder / f"{split}.{'-'.join(languages)}.{language}"
        sentences = ([ids.get(subword, _UNKNOWN) for subword in subwords] for subwords in side)
        counts.append(_write_ids(prefix, sentences, len(ids)))
    if counts[0] != counts[1]:
        raise DataError(
            f"{folder / split}: source and target must have the same number of sentences "
            f"(got {counts[0]} and {counts[1]})."
        )


def _write_ids(prefix: Path, sentences: Iterable[list[int]], vocab_size: int) -> int:
    """Write token ids and EOS as a memory-mapped dataset of fairseq; return the sentence count.

    {prefix}.bin: the ids of all sentences. {prefix}.idx: a header, the length of each sentence in
    tokens, and its offset in bytes.
    """
    id_type, code = next((t, code) for most, t, code in _ID_TYPES if vocab_size <= most)
    lengths = []
    with Path(f"{prefix}.bin").open("wb") as file:
        for ids in sentences:
            file.write(np.array([*ids, _EOS], id_type).tobytes())
            lengths.append(len(ids) + 1)
    length = np.array(lengths, np.int32)
    offset = (np.cumsum(length, dtype=np.int64) - length) * np.dtype(id_type).itemsize
    header = _MAGIC + struct.pack("<QBQ", _VERSION, code, len(length))
    Path(f"{prefix}.idx").write_bytes(header + length.tobytes() + offset.tobytes())
    return len(length)

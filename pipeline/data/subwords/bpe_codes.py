"""BPE codes of subword-nmt or fastBPE, applied to text that Moses tokenises."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.errors import DataError

_CONTINUES = "@@"
_VERSION_MARK = "#version:"
_VERSIONS = ("0.1", "0.2")


class MosesBpeModel:
    """BPE codes of subword-nmt or fastBPE, for text of one language.

    Raises DataError, naming file and line, if the codes are malformed.
    """

    def __init__(self, codes: Path, language: str) -> None:
        from sacremoses import MosesDetokenizer, MosesTokenizer
        from subword_nmt.apply_bpe import BPE

        self._bpe = BPE(io.StringIO(_subword_nmt_codes(codes), newline="\n"))
        self._tokeniser = MosesTokenizer(language)
        self._detokeniser = MosesDetokenizer(language)

    def subwords(self, text: str) -> list[str]:
        """Cut a text into subwords; one that does not end its word is marked by `@@`."""
        tokens: str = self._tokeniser.tokenize(
            text, aggressive_dash_splits=True, return_str=True, escape=True
        )
        subwords: list[str] = self._bpe.segment_tokens(tokens.split(" "))
        return subwords

    def text(self, subwords: Sequence[str]) -> str:
        """Join subwords and detokenise the result."""
        tokens = "".join(f"{subword} " for subword in subwords).replace(f"{_CONTINUES} ", "")
        text: str = self._detokeniser.detokenize(tokens.split())
        return text


def _subword_nmt_codes(path: Path) -> str:
    """Return codes in subword-nmt's format: the version first, and no counts.

    Codes of fastBPE have counts. They correspond to version 0.2 of subword-nmt, in which the last
    symbol of a word carries the end-of-word mark.
    """
    try:
        lines = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: BPE codes must be UTF-8 ({error}). Set data.units.codes to a file of "
            f"subword-nmt or fastBPE."
        ) from None
    has_version = lines[0].startswith(_VERSION_MARK)
    has_counts = not has_version and _is_counted(lines[0].split(" "))
    version = "0.2" if has_counts else "0.1"
    if has_version:
        version = lines[0].removeprefix(_VERSION_MARK).strip()
    if version not in _VERSIONS:
        raise DataError(
            f"{path}, line 1: BPE codes must be of version {' or '.join(_VERSIONS)} "
            f"(got {version}). Learn them with a current subword-nmt or fastBPE."
        )
    merges = _merges(path, lines[has_version:], 1 + has_version, has_counts=has_counts)
    return "\n".join([f"{_VERSION_MARK} {version}", *merges])


def _merges(path: Path, lines: Sequence[str], first: int, *, has_counts: bool) -> Iterator[str]:
    for number, line in enumerate(lines, start=first):
        fields = line.strip("\r ").split(" ")
        is_malformed = len(fields) != 2 + has_counts or "" in fields
        if is_malformed or (has_counts and not _is_counted(fields)):
            expected = "two symbols and their count" if has_counts else "two symbols"
            raise DataError(
                f"{path}, line {number}: a BPE code must be {expected} (got {line!r}). Set "
                f"data.units.codes to a file of subword-nmt or fastBPE."
            )
        yield " ".join(fields[:2])


def _is_counted(fields: Sequence[str]) -> bool:
    return len(fields) == 3 and fields[2].isdecimal()

"""The user's own BPE codes, as fairseq's published translation models have them: on Moses' tokens.

Text is cut and put together as by fairseq's `--tokenizer moses --bpe subword_nmt`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.errors import DataError

_CONTINUES = "@@"
_VERSION_MARK = "#version:"
_VERSIONS = ("0.1", "0.2")


class MosesBpeUnits:
    """Codes of subword-nmt or of fastBPE, for text of one language.

    Raises DataError, naming file and line, where the codes are of another form.
    """

    def __init__(self, codes: Path, language: str) -> None:
        from sacremoses import MosesDetokenizer, MosesTokenizer
        from subword_nmt.apply_bpe import BPE

        self._bpe = BPE(io.StringIO(_codes_of_subword_nmt(codes), newline="\n"))
        self._tokeniser = MosesTokenizer(language)
        self._detokeniser = MosesDetokenizer(language)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text; one that does not end its token has `@@` at its end."""
        tokens: str = self._tokeniser.tokenize(
            text, aggressive_dash_splits=True, return_str=True, escape=True
        )
        pieces: list[str] = self._bpe.segment_tokens(tokens.split(" "))
        return pieces

    def text(self, pieces: Sequence[str]) -> str:
        """The detokenised text that pieces stand for."""
        tokens = "".join(f"{piece} " for piece in pieces).replace(f"{_CONTINUES} ", "")
        text: str = self._detokeniser.detokenize(tokens.split())
        return text


def _codes_of_subword_nmt(path: Path) -> str:
    """The codes with their version in the first line; fastBPE's, which have counts, without them.

    A fastBPE code is one of version 0.2: the end of a word is marked in its last unit.
    """
    try:
        lines = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} must hold BPE codes in UTF-8: {error}") from None
    marked = lines[0].startswith(_VERSION_MARK)
    counted = not marked and _is_counted(lines[0].split(" "))
    version = "0.2" if counted else "0.1"
    if marked:
        version = lines[0].removeprefix(_VERSION_MARK).strip()
    if version not in _VERSIONS:
        raise DataError(
            f"{path}, line 1: BPE codes must be of version {' or '.join(_VERSIONS)}, got {version}"
        )
    merges = _merges(path, lines[marked:], 1 + marked, counted=counted)
    return "\n".join([f"{_VERSION_MARK} {version}", *merges])


def _merges(path: Path, lines: Sequence[str], first: int, *, counted: bool) -> Iterator[str]:
    for number, line in enumerate(lines, start=first):
        fields = line.strip("\r ").split(" ")
        if len(fields) != 2 + counted or (counted and not _is_counted(fields)) or "" in fields:
            what = "two units and their count" if counted else "two units"
            raise DataError(f"{path}, line {number}: a BPE code must be {what}, got {line!r}")
        yield " ".join(fields[:2])


def _is_counted(fields: Sequence[str]) -> bool:
    return len(fields) == 3 and fields[2].isdecimal()

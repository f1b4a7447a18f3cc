"""Hypotheses that come from elsewhere than a search: from a decode store, or from lines of text."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

from pipeline.config import DecodeConfig
from pipeline.data.text import iterate_lines
from pipeline.data.units import Units
from pipeline.decoding.sentence import Sentence
from pipeline.decoding.test_set import Dictionary, PreparedSentence, token_ids
from pipeline.errors import DataError, StoreError
from pipeline.store import open_store, validate

_AT_ONCE = 4096  # sources that are compared


@dataclass(frozen=True)
class Draft:
    """A hypothesis that is still to be scored: its tokens, with EOS where it is finished."""

    token_id: list[int]
    finished: bool


# The drafts of each sentence of a batch; combination and settings are those of the decode.
Find = Callable[[Sequence[Sentence], str, DecodeConfig], Sequence[Sequence[Draft]]]


@dataclass(frozen=True)
class Given:
    """The file that `decode.hypotheses` names for a test set; units: what cuts its text.

    Without units the file is a decode store.
    """

    path: Path
    test_set: Sequence[PreparedSentence]
    units: Units | None


def drafts_of(given: Given, dictionary: Dictionary, vocab_size: int) -> Find:
    """What gives the hypotheses of a file.

    Raises DataError where it is of another test set, StoreError where it is a faulty store.
    """
    if given.units is None:
        return _of_store(given.path, given.test_set, vocab_size)
    return _of_text(given.path, len(given.test_set), given.units, dictionary)


def _of_store(path: Path, test_set: Sequence[PreparedSentence], vocab_size: int) -> Find:
    for fault in validate(path):
        raise StoreError(fault)
    store = open_store(path)
    same = store.vocab_size == vocab_size and store.n_sentence == len(test_set)
    for start in range(0, len(test_set) if same else 0, _AT_ONCE):
        sources = [one.source for one in test_set[start : start + _AT_ONCE]]
        same &= store.read("/sentence/source", start, start + _AT_ONCE).tolist() == sources
    if not same:
        raise DataError(
            f"{path} must be a decode of the same {len(test_set)} sentences with "
            f"{vocab_size} tokens in its vocabulary, got another test set of "
            f"{store.n_sentence} sentences or {store.vocab_size} tokens"
        )

    def of_sentence(place: int, most: int) -> list[Draft]:
        first, last = store.hypothesis_offset[place : place + 2]
        last = min(last, first + most)
        offset = store.token_offset[first : last + 1]
        token = store.read("/token/id", offset[0], offset[-1])
        finished = store.read("/hypothesis/finished", first, last)
        bounds = zip(offset[:-1] - offset[0], offset[1:] - offset[0], finished, strict=True)
        return [Draft(token[start:stop].tolist(), bool(ended)) for start, stop, ended in bounds]

    def find(
        sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Draft]]:
        return [of_sentence(one.id, decode.n_best or decode.beam) for one in sentences]

    return find


def _of_text(path: Path, n_sentence: int, units: Units, dictionary: Dictionary) -> Find:
    """One hypothesis a line, detokenised; a blank line: the sentence has none."""
    lines = _Lines(path)
    if len(lines) != n_sentence:
        raise DataError(
            f"{path} must have a line for each of the {n_sentence} sentences, got {len(lines)}"
        )

    def of_sentence(place: int) -> list[Draft]:
        pieces = units.pieces(lines[place])
        return [Draft(token_ids(pieces, dictionary), finished=True)] if pieces else []

    def find(
        sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Draft]]:
        return [of_sentence(one.id) for one in sentences]

    return find


class _Lines:
    """The lines of a text file, gzipped or not, in any order; in memory is where each starts."""

    def __init__(self, path: Path) -> None:
        self._copy = TemporaryFile()  # noqa: SIM115 - open for as long as lines are asked for
        finalize(self, self._copy.close)
        self._start = array("q")
        for line in iterate_lines(path):
            self._start.append(self._copy.tell())
            self._copy.write(f"{line}\n".encode())

    def __len__(self) -> int:
        return len(self._start)

    def __getitem__(self, place: int) -> str:
        self._copy.seek(self._start[place])
        return self._copy.readline().decode()

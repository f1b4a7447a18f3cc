"""A prepared test set, read and turned into token ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pipeline.decoding.sentence import Sentence
from pipeline.errors import DataError


class Dictionary(Protocol):
    """What is needed of a vocabulary; an unknown unit has the index of `<unk>`."""

    symbols: list[str]

    def index(self, sym: str) -> int:
        """Token id of a unit."""

    def eos(self) -> int:
        """Token id of the end of a sentence."""


@dataclass(frozen=True)
class PreparedSentence:
    """One line of a test set: texts as people read them, and their sub-word units."""

    id: int
    source: str
    reference: str | None
    source_pieces: list[str]
    reference_pieces: list[str] | None

    def encoded(self, source: Dictionary, target: Dictionary) -> Sentence:
        """The same sentence as token ids with EOS."""
        reference = self.reference_pieces
        return Sentence(
            self.id,
            _token_ids(self.source_pieces, source),
            None if reference is None else _token_ids(reference, target),
        )


def read_test_set(path: Path) -> list[PreparedSentence]:
    """The sentences of a {role}.jsonl file, in the order of their ids.

    Raises DataError, naming file and line, where a line is not such a sentence or an id is not the
    line's position counted from 0.
    """
    sentences = []
    with path.open(encoding="utf-8", newline="\n") as file:
        for place, line in enumerate(file):
            sentence = _parsed(line, f"{path}, line {place + 1}")
            if sentence.id != place:
                raise DataError(f"{path}, line {place + 1}: id must be {place}, got {sentence.id}")
            sentences.append(sentence)
    if not sentences:
        raise DataError(f"{path} must hold at least one sentence, got an empty file")
    return sentences


def _parsed(line: str, where: str) -> PreparedSentence:
    try:
        fields: dict[str, Any] = json.loads(line)
        return PreparedSentence(
            fields["id"],
            fields["source"],
            fields["reference"],
            fields["source_pieces"],
            fields["reference_pieces"],
        )
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError(
            f"{where} must be a sentence as JSON, got {line.strip()!r}: {error!r}"
        ) from None


def _token_ids(pieces: Sequence[str], dictionary: Dictionary) -> list[int]:
    return [*(int(dictionary.index(piece)) for piece in pieces), int(dictionary.eos())]

"""Hypotheses of a part of the members, or of another decode, under all members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config import DecodeConfig
from pipeline.decoding.block import read_hypotheses
from pipeline.decoding.model import ScoringModel
from pipeline.decoding.run import Search
from pipeline.decoding.sentence import Sentence
from pipeline.decoding.teacher_forcing import score_targets
from pipeline.decoding.test_set import PreparedSentence
from pipeline.errors import DataError
from pipeline.store import Hypothesis, open_store

# Token distributions of all members that are held at once: with one member in memory at a time,
# those of the others wait for it.
_CHUNK_VALUES = 2**28


def scored_by_all(search: Search, searching: Any) -> Search:
    """A search whose hypotheses `searching` finds and the model that it is given scores.

    Score and statistics are those of all members; hypotheses are put in the order of that score.
    """

    def found_and_scored(
        model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Hypothesis]]:
        found = search(searching, sentences, combination, decode)
        pairs = [
            (replace(sentence, target=one.token_id.tolist()), one)
            for sentence, best in zip(sentences, found, strict=True)
            for one in best
        ]
        scored = score_in_chunks(model, [one for one, _ in pairs], combination, decode)
        kept: dict[int, list[Hypothesis]] = {one.id: [] for one in sentences}
        for (sentence, before), (after,) in zip(pairs, scored, strict=True):
            kept[sentence.id].append(replace(after, finished=before.finished))
        return [
            sorted(kept[one.id], key=lambda each: each.score, reverse=True) for one in sentences
        ]

    return found_and_scored


def score_in_chunks(
    model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """`score_targets` for members of which one is in memory at a time, in bounded memory."""
    found = []
    for chunk in _chunks(sentences, max(1, _CHUNK_VALUES // (model.n_member * model.vocab_size))):
        found += score_targets(model, chunk, combination, decode)
    return found


def hypotheses_of(path: Path, test_set: Sequence[PreparedSentence], vocab_size: int) -> Search:
    """A search that takes the hypotheses of a decode store of the same test set.

    Raises DataError where the store is of another test set or vocabulary.
    """
    with open_store(path) as store:
        if store.vocab_size != vocab_size or store.sources() != [one.source for one in test_set]:
            raise DataError(
                f"{path} must be a decode of the same {len(test_set)} sentences with "
                f"{vocab_size} tokens in its vocabulary, got another test set of "
                f"{store.n_sentence} sentences or {store.vocab_size} tokens"
            )
        stored = [found.hypotheses for found in read_hypotheses(store)]

    def taken(
        model: object, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Hypothesis]]:
        return [stored[one.id][: decode.n_best or decode.beam] for one in sentences]

    return taken


def _chunks(sentences: Sequence[Sentence], most_tokens: int) -> Iterator[list[Sentence]]:
    chunk: list[Sentence] = []
    n_token = 0
    for sentence in sentences:
        length = len(sentence.target or ())
        if chunk and n_token + length > most_tokens:
            yield chunk
            chunk, n_token = [], 0
        chunk.append(sentence)
        n_token += length
    if chunk:
        yield chunk

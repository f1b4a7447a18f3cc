"""Hypotheses of a part of the members, or from elsewhere, under all members of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.config import DecodeConfig
from pipeline.decoding.chunk import chunks
from pipeline.decoding.given import Draft, Find
from pipeline.decoding.model import EnsembleModel, ScoringModel
from pipeline.decoding.run import Search
from pipeline.decoding.sentence import Sentence
from pipeline.decoding.teacher_forcing import score_targets
from pipeline.store import Hypothesis


def searched_by(search: Search, searching: EnsembleModel) -> Find:
    """Drafts that a search finds with some of the members."""

    def find(
        sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Draft]]:
        return [
            [Draft(one.token_id.tolist(), one.finished) for one in best]
            for best in search(searching, sentences, combination, decode)
        ]

    return find


def scored_by_all(find: Find) -> Search:
    """A search whose hypotheses `find` gives and the model that it is handed scores.

    Score and statistics are those of all members; hypotheses are put in the order of that score.
    One that is longer than the models' positions is left out.
    """

    def found_and_scored(
        model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Hypothesis]]:
        pairs = [
            (replace(sentence, target=one.token_id), one)
            for sentence, drafts in zip(
                sentences, find(sentences, combination, decode), strict=True
            )
            for one in drafts
        ]
        scored = score_in_chunks(model, [one for one, _ in pairs], combination, decode)
        kept: dict[int, list[Hypothesis]] = {one.id: [] for one in sentences}
        for (sentence, before), found in zip(pairs, scored, strict=True):
            kept[sentence.id] += [replace(after, finished=before.finished) for after in found]
        return [
            sorted(kept[one.id], key=lambda each: each.score, reverse=True) for one in sentences
        ]

    return found_and_scored


def score_in_chunks(
    model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """`score_targets` for members of which one is in memory at a time, in bounded memory."""
    n_token = [len(one.target or ()) for one in sentences]
    found = []
    for chunk in chunks(model, n_token, len(sentences)):
        found += score_targets(model, sentences[chunk], combination, decode)
    return found

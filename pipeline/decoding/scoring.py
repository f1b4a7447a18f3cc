"""Hypotheses of a part of the members, or from elsewhere, under all members of an ensemble."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

from pipeline.data.lines import iterate_lines
from pipeline.data.subwords import SubwordModel
from pipeline.decoding.blocks import Search
from pipeline.decoding.model import EnsembleModel, ScoringModel, chunks
from pipeline.decoding.posterior import (
    refuse_nan,
    sequence_logprob,
    statistics_columns,
    statistics_of,
)
from pipeline.decoding.test_set import Dictionary, PreparedSentence, Sentence, padded, token_ids
from pipeline.errors import DataError, StoreError
from pipeline.run.settings import DecodeConfig
from pipeline.store import Hypothesis, open_store, validate


def score_targets(
    model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """The target of each sentence of a batch as its one hypothesis, with statistics.

    One pass of the decoders over the batch, not token by token. Score as in beam search, for the
    posterior `combination` (prex, expr). A sentence without a target, or with one that is longer
    than the models' positions, has no hypothesis. Texts are left empty. Raises DataError naming
    member and sentence for a log-probability that is NaN.
    """
    found: list[list[Hypothesis]] = [[] for _ in sentences]
    scored = [
        (place, one, one.target)
        for place, one in enumerate(sentences)
        if one.target is not None and len(one.target) <= model.max_target_tokens
    ]
    if not scored:
        return found
    source = padded([one.source for _, one, _ in scored], model.pad)
    # A decoder looks back only, so what fills up a short target is not seen and needs no mask.
    prefix = padded([[model.eos, *target[:-1]] for _, _, target in scored], model.eos)
    lengths = [len(target) for _, _, target in scored]
    with torch.inference_mode():
        each = model.force(source, prefix, lengths)
        for (place, sentence, target), logits in zip(scored, each, strict=True):
            logprob = logits.log_softmax(dim=2).cpu()
            found[place] = [_scored(sentence.id, logprob, target, combination, decode)]
    return found


def _scored(
    sentence_id: int, logprob: Tensor, target: list[int], combination: str, decode: DecodeConfig
) -> Hypothesis:
    """A target [token] as a hypothesis; logprob [token, member, vocab]."""
    refuse_nan(logprob, lambda _: sentence_id)
    n_token, n_member, _ = logprob.shape
    chosen = logprob[torch.arange(n_token), :, target]
    prefix = torch.cat([torch.zeros(1, n_member), chosen[:-1].cumsum(dim=0)])
    history = np.concatenate([chosen.numpy(), statistics_columns(logprob, prefix)], axis=1)
    score = sequence_logprob(chosen, combination) / n_token**decode.length_penalty
    statistics = statistics_of(history, n_member)
    return Hypothesis(np.array(target), "", score, finished=True, statistics=statistics)


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
    units: SubwordModel | None


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


def _of_text(path: Path, n_sentence: int, units: SubwordModel, dictionary: Dictionary) -> Find:
    """One hypothesis a line, detokenised; a blank line: the sentence has none."""
    lines = _Lines(path)
    if len(lines) != n_sentence:
        raise DataError(
            f"{path} must have a line for each of the {n_sentence} sentences, got {len(lines)}"
        )

    def of_sentence(place: int) -> list[Draft]:
        pieces = units.subwords(lines[place])
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

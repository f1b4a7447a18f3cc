"""Rescore hypotheses of a store, a text file or a search with all members; and the self-check."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

import numpy as np

from pipeline.data.lines import iterate_lines
from pipeline.decoding.blocks import Decoder
from pipeline.decoding.device import DistributionsOf, distributions_of
from pipeline.decoding.model import EnsembleModel, ScoringModel, Search
from pipeline.decoding.scoring import score_in_chunks
from pipeline.decoding.test_set import PreparedSentence, Sentence
from pipeline.decoding.tokenizer import Tokenizer
from pipeline.errors import DataError, PipelineError, StoreError
from pipeline.run.settings import DecodeConfig
from pipeline.store import Hypothesis, open_store, validate
from pipeline.store.ranking import first_ranks, is_ranked
from pipeline.store.statistics import STATISTICS, Array
from pipeline.text_traces import Traces

_log = logging.getLogger(__name__)
_COMPARED_SENTENCES = 4096  # sources that are compared at a time
_TOLERANCE_NATS = 1e-4
SELF_CHECK_SENTENCES = 64
_ALONE_SENTENCES = 16


@dataclass(frozen=True)
class UnscoredHypothesis:
    """A hypothesis to score: its token ids, which end with EOS if it is finished."""

    token_id: list[int]
    finished: bool


# Returns the hypotheses to score for each sentence of a batch; arguments as for a `Search`.
HypothesisSource = Callable[
    [Sequence[Sentence], str, DecodeConfig], Sequence[Sequence[UnscoredHypothesis]]
]


@dataclass(frozen=True)
class HypothesisFile:
    """The file that `decode.hypotheses` names for a test set.

    is_text: whether it has one hypothesis per line; else it is a decode store.
    """

    path: Path
    test_set: Sequence[PreparedSentence]
    is_text: bool


def hypotheses_of_file(
    file: HypothesisFile, tokenizer: Tokenizer, vocab_size: int
) -> HypothesisSource:
    """Take the hypotheses to score from a file.

    Raises DataError if it belongs to another test set, StoreError if it is an invalid store.
    """
    if file.is_text:
        return _of_text(file.path, len(file.test_set), tokenizer)
    return _of_store(file.path, file.test_set, vocab_size)


def _of_store(
    path: Path, test_set: Sequence[PreparedSentence], vocab_size: int
) -> HypothesisSource:
    for fault in validate(path):
        raise StoreError(fault)
    store = open_store(path)
    same = store.vocab_size == vocab_size and store.n_sentence == len(test_set)
    for start in range(0, len(test_set) if same else 0, _COMPARED_SENTENCES):
        stop = start + _COMPARED_SENTENCES
        sources = [sentence.source for sentence in test_set[start:stop]]
        same &= store.read("/sentence/source", start, stop).tolist() == sources
    if not same:
        raise DataError(
            f"{path}: not a decode of the same {len(test_set)} sentences with a vocabulary of "
            f"{vocab_size} tokens (got another test set of {store.n_sentence} sentences or a "
            f"vocabulary of {store.vocab_size}). Set decode.hypotheses to a store of this test set."
        )

    def of_sentence(index: int, max_hypotheses: int) -> list[UnscoredHypothesis]:
        """The distinct ones among the first `max_hypotheses` of a sentence."""
        first, last = store.hypothesis_offset[index : index + 2]
        last = min(last, first + max_hypotheses)
        offset = store.token_offset[first : last + 1]
        token = store.read("/token/id", offset[0], offset[-1])
        finished = store.read("/hypothesis/finished", first, last)
        bounds = zip(offset[:-1] - offset[0], offset[1:] - offset[0], finished, strict=True)
        hypotheses = [
            UnscoredHypothesis(token[start:stop].tolist(), bool(ended))
            for start, stop, ended in bounds
        ]
        first_rank = first_ranks([hypothesis.token_id for hypothesis in hypotheses])
        return [hypotheses[rank] for rank, first in enumerate(first_rank) if first == rank]

    if not is_ranked(store.regime, store.combination):
        sizes = np.diff(store.hypothesis_offset)
        repeated = sum(
            size - len(of_sentence(index, size)) for index, size in enumerate(sizes.tolist())
        )
        if repeated:
            _log.warning(
                "%s: %d of %d hypotheses repeat another one of their sentence; each is scored once",
                path,
                repeated,
                store.n_hypothesis,
            )

    def of_batch(
        sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[UnscoredHypothesis]]:
        max_hypotheses = decode.n_best or decode.beam
        return [of_sentence(sentence.id, max_hypotheses) for sentence in sentences]

    return of_batch


def _of_text(path: Path, n_sentence: int, tokenizer: Tokenizer) -> HypothesisSource:
    """Read one detokenised hypothesis per line; a blank line means that the sentence has none."""
    lines = _IndexedLines(path)
    if len(lines) != n_sentence:
        raise DataError(
            f"{path}: must have one line for each of the {n_sentence} sentences "
            f"(got {len(lines)} lines). Leave a line blank for a sentence without a hypothesis."
        )
    for warning in lines.traces.warnings(str(path)):
        _log.warning("%s", warning)

    def of_sentence(index: int) -> list[UnscoredHypothesis]:
        token_id = tokenizer.target_of_text(lines[index])
        return [UnscoredHypothesis(token_id, finished=True)] if token_id else []

    def of_batch(
        sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[UnscoredHypothesis]]:
        return [of_sentence(sentence.id) for sentence in sentences]

    return of_batch


class _IndexedLines:
    """Random access to the lines of a text file (also .gz); only their offsets are in memory."""

    def __init__(self, path: Path) -> None:
        self._copy = TemporaryFile()  # noqa: SIM115 - open for as long as lines are read
        finalize(self, self._copy.close)
        self._offset = array("q")
        self.traces = Traces()  # what preprocessing left in the lines
        for line in iterate_lines(path):
            self.traces.add(line)
            self._offset.append(self._copy.tell())
            self._copy.write(f"{line}\n".encode())

    def __len__(self) -> int:
        return len(self._offset)

    def __getitem__(self, index: int) -> str:
        self._copy.seek(self._offset[index])
        return self._copy.readline().decode()


def hypotheses_of_search(search: Search, searching: EnsembleModel) -> HypothesisSource:
    """Find the hypotheses to score by a search with some of the members."""

    def of_batch(
        sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[UnscoredHypothesis]]:
        return [
            [UnscoredHypothesis(hyp.token_id.tolist(), hyp.finished) for hyp in best]
            for best in search(searching, sentences, combination, decode)
        ]

    return of_batch


def rescoring_search(
    hypotheses_of_batch: HypothesisSource, distributions: DistributionsOf = distributions_of
) -> Search:
    """A search that scores the hypotheses of a source with the model that it is called with.

    Score, order and statistics are computed with all members. Hypotheses that are longer than the
    models allow are left out. distributions: as of `score_targets`.
    """

    def search(
        model: ScoringModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
    ) -> list[list[Hypothesis]]:
        unscored = hypotheses_of_batch(sentences, combination, decode)
        pairs = [
            (replace(sentence, target=hypothesis.token_id), hypothesis)
            for sentence, hypotheses in zip(sentences, unscored, strict=True)
            for hypothesis in hypotheses
        ]
        targets = [sentence for sentence, _ in pairs]
        scored = score_in_chunks(model, targets, combination, decode, distributions=distributions)
        rescored: dict[int, list[Hypothesis]] = {sentence.id: [] for sentence in sentences}
        for (sentence, before), hypotheses in zip(pairs, scored, strict=True):
            rescored[sentence.id] += [
                replace(after, finished=before.finished) for after in hypotheses
            ]
        return [
            sorted(rescored[sentence.id], key=lambda hyp: hyp.score, reverse=True)
            for sentence in sentences
        ]

    return search


def self_check(decoder: Decoder, sentences: Sequence[Sentence], combination: str) -> float:
    """Check that decoding agrees with rescoring and does not depend on the batch.

    All sentences that can be decoded form one batch. Their best hypotheses are rescored by teacher
    forcing, and the first 16 sentences are decoded alone. (Of two hypotheses with the same score,
    either may be the best.) Returns the largest difference of a score or statistic in nats. Raises
    PipelineError naming the sentence if it exceeds 1e-4.
    """
    max_tokens = decoder.model.max_source_tokens
    batch = [
        sentence
        for sentence in sentences
        if not sentence.is_empty and len(sentence.source) <= max_tokens
    ]
    if not batch:
        return 0.0
    together = _best(decoder, batch, combination)
    largest = 0.0
    for sentence in batch[:_ALONE_SENTENCES]:
        alone = _best(decoder, [sentence], combination).get(sentence.id)
        difference = _difference(alone, together.get(sentence.id))
        largest = max(largest, _tolerated(difference, sentence.id, "decoded alone"))
    # The score of a sample of one member is under that member, not under a posterior.
    of_ensemble = {key: best for key, best in together.items() if best.member < 0}
    targets = [
        replace(sentence, target=of_ensemble[sentence.id].token_id.tolist())
        for sentence in batch
        if sentence.id in of_ensemble
    ]
    scored = score_in_chunks(decoder.model, targets, combination, decoder.decode)
    for sentence, (rescored,) in zip(targets, scored, strict=True):
        best = of_ensemble[sentence.id]
        if decoder.decode.unk_penalty:  # only the search adds it to its scores
            rescored = replace(rescored, score=best.score)
        difference = _difference(rescored, best)
        largest = max(largest, _tolerated(difference, sentence.id, "rescored"))
    return largest


def _best(decoder: Decoder, batch: Sequence[Sentence], combination: str) -> dict[int, Hypothesis]:
    """The best hypothesis of each sentence that has one, by the sentence's id."""
    hypotheses = decoder.search(decoder.model, batch, combination, decoder.decode)
    return {sentence.id: best[0] for sentence, best in zip(batch, hypotheses, strict=True) if best}


def _tolerated(difference: float, sentence_id: int, how: str) -> float:
    if difference > _TOLERANCE_NATS:
        raise PipelineError(
            f"decode.self_check: the best hypothesis of sentence {sentence_id} differs when {how} "
            f"({difference:.3g} nats, more than {_TOLERANCE_NATS}). Check that the search and the "
            f"models do not depend on the batch and that scores are those of the combination."
        )
    return difference


def _difference(first: Hypothesis | None, second: Hypothesis | None) -> float:
    """The largest difference of score and statistics of two hypotheses that should be the same."""
    if first is None or second is None:
        return 0.0 if first is second else np.inf
    difference = abs(first.score - second.score)
    if first.token_id.tolist() == second.token_id.tolist():
        for name in STATISTICS:
            pair = getattr(first.statistics, name), getattr(second.statistics, name)
            difference = max(difference, _largest_distance(*pair))
    return float(difference)


def _largest_distance(first: Array, second: Array) -> float:
    with np.errstate(invalid="ignore"):
        distance = np.where(first == second, 0.0, np.abs(first - second))
    largest: float = distance.max(initial=0.0)
    return largest

"""One pass over a decode store: its token measures in blocks, and their sums per hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ConfigError
from pipeline.statistics.kernel import fused_statistics
from pipeline.statistics.posterior import (
    Array,
    Float64,
    SequenceLogprob,
    prefix_logprob,
    sequence_logprob,
)
from pipeline.store import Store, TokenStatistics
from pipeline.store.statistics import STATISTICS
from pipeline.uncertainty.hypothesis import HypothesisSums, deviation_of_tokens
from pipeline.uncertainty.measures_of_tokens import POSTERIORS, TOKEN_MEASURES
from pipeline.uncertainty.token import all_measures
from pipeline.uncertainty.weighted_statistics import WeightedStatistics, weighted_statistics

_BLOCK_BYTES = 2**25


@dataclass(frozen=True)
class TokenBlock:
    """Token measures of the hypotheses [first : last] of a store.

    token_offset [hypothesis + 1], counted from the first token of the block; token_id [token];
    statistics: what the measures were computed from; measures: name -> [token], in nats.
    """

    first: int
    last: int
    token_offset: NDArray[np.int64]
    token_id: NDArray[np.int32]
    statistics: WeightedStatistics
    measures: dict[str, Float64]


def token_blocks(
    store: Store, members: Sequence[int] | None = None, eos: str = "include"
) -> Iterator[TokenBlock]:
    """Compute the token measures of a whole store, in blocks of bounded memory.

    members: indices of the members to use, all by default. For a subset, measures of full
    distributions need a store with `dump=full`. eos: `zero` sets these measures to 0 at the last
    token of finished hypotheses, except under teacher forcing, as the paper's released code does.
    Raises ConfigError for members that the store does not have and for an unknown `eos`.
    """
    if eos not in ("include", "zero"):
        raise ConfigError(f"uncertainty.eos: must be include or zero (got {eos}).")
    chosen = chosen_members(store, members)
    complete = has_distributions(store, members)
    finished = store.read("/hypothesis/finished").astype(bool)
    zero_at_eos = eos == "zero" and store.regime != "teacher_forcing"
    for first, last in _ranges(store, members is not None and complete):
        start, stop = int(store.token_offset[first]), int(store.token_offset[last])
        offset = store.token_offset[first : last + 1] - start
        if members is None:
            stored = _stored(store, start, stop)
        elif complete:
            stored = _recomputed(store, start, stop, offset, chosen)
        else:
            stored = _logprob_only(store, start, stop, chosen)
        statistics = weighted_statistics(stored, offset)
        measures = all_measures(statistics, realised_only=not complete)
        if zero_at_eos:
            _set_zero(measures, offset[1:][finished[first:last]] - 1)
        token_id = store.read("/token/id", start, stop)
        yield TokenBlock(first, last, offset, token_id, statistics, measures)


class HypothesisSummation:
    """Adds up the blocks of a store, given in order, to sums over the tokens of each hypothesis."""

    def __init__(self, store: Store, members: Sequence[int] | None = None) -> None:
        complete = has_distributions(store, members)
        self._length = np.diff(store.token_offset).astype(np.float64)
        self._n_member = len(chosen_members(store, members))
        self._chain = [
            name
            for name, measure in TOKEN_MEASURES.items()
            if measure.chain is not None and (complete or measure.of_realised_token)
        ]
        self._maximum = [
            name
            for name, measure in TOKEN_MEASURES.items()
            if measure.maximum is not None and (complete or measure.of_realised_token)
        ]
        self._logprob: list[SequenceLogprob] = []
        self._sums: list[Float64] = []
        self._highest: list[Float64] = []
        self._deviation: list[Float64] = []

    def add(self, block: TokenBlock) -> None:
        """Add the next block of hypotheses."""
        logprob = block.statistics.statistics.logprob
        of_sequences = sequence_logprob(logprob, block.token_offset)
        self._logprob.append(of_sequences)
        self._deviation.append(
            deviation_of_tokens(logprob, of_sequences.member, block.token_offset)
        )
        for names, add_up, values_of_blocks in (
            (self._chain, np.add, self._sums),
            (self._maximum, np.maximum, self._highest),
        ):
            if names:
                values = np.column_stack([block.measures[name] for name in names])
                values_of_blocks.append(add_up.reduceat(values, block.token_offset[:-1], axis=0))

    def sums(self) -> HypothesisSums:
        """Return the sums, once all blocks of the store have been added."""
        blocks = self._logprob
        none, no_member = np.empty(0), np.empty((0, self._n_member))
        sums = np.concatenate([np.empty((0, len(self._chain))), *self._sums])
        highest = np.concatenate([np.empty((0, len(self._maximum))), *self._highest])
        return HypothesisSums(
            length=self._length,
            logprob_member=np.concatenate([no_member, *(block.member for block in blocks)]),
            logprob={
                "prex": np.concatenate([none, *(block.prex for block in blocks)]),
                "expr": np.concatenate([none, *(block.expr for block in blocks)]),
            },
            chain=dict(zip(self._chain, sums.T, strict=True)),
            maximum=dict(zip(self._maximum, highest.T, strict=True)),
            deviation=np.concatenate([none, *self._deviation]),
        )


def chosen_members(store: Store, members: Sequence[int] | None) -> list[int]:
    """Return the indices of the members to use.

    Raises ConfigError unless they are distinct members of the store.
    """
    if members is None:
        return list(range(store.n_member))
    chosen = list(members)
    if (
        not chosen
        or len(set(chosen)) < len(chosen)
        or not set(chosen) <= set(range(store.n_member))
    ):
        raise ConfigError(
            f"members: must be distinct indices in [0, {store.n_member}) of {store.path} "
            f"(got {chosen})."
        )
    return chosen


def decoding_posteriors(store: Store) -> tuple[str, ...]:
    """Return the posteriors that found the hypotheses.

    None if single members drew them; both for an ensemble of one member, where they are equal.
    """
    if store.n_member == 1:
        return tuple(POSTERIORS)
    return (store.combination,) if store.combination in POSTERIORS else ()


def has_distributions(store: Store, members: Sequence[int] | None) -> bool:
    """Whether the store can give measures of full distributions for these members."""
    return members is None or store.dump == "full"


def _ranges(store: Store, from_full: bool) -> Iterator[tuple[int, int]]:
    """Divide the hypotheses into ranges that fit a block; a longer hypothesis is its own block."""
    token_bytes = 8 * store.n_member * (store.vocab_size if from_full else 8)
    tokens = max(1, _BLOCK_BYTES // token_bytes)
    first = 0
    while first < store.n_hypothesis:
        end = store.token_offset[first] + tokens
        last = int(np.searchsorted(store.token_offset, end, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _stored(store: Store, start: int, stop: int) -> TokenStatistics:
    return TokenStatistics(
        **{name: store.read(f"/token/{name}", start, stop) for name in STATISTICS}
    )


def _recomputed(
    store: Store, start: int, stop: int, offset: NDArray[np.int64], chosen: list[int]
) -> TokenStatistics:
    logprob: Array = store.read("/token/logprob", start, stop)[:, chosen]
    full: Array = store.read("/token/full_logprob", start, stop)[:, chosen]
    prefix = prefix_logprob(logprob, offset)
    return TokenStatistics(logprob=logprob, **fused_statistics(full, prefix))


def _logprob_only(store: Store, start: int, stop: int, chosen: list[int]) -> TokenStatistics:
    absent: NDArray[Any] = np.empty((0,), np.float32)
    logprob = store.read("/token/logprob", start, stop)[:, chosen]
    return TokenStatistics(logprob, *[absent] * (len(STATISTICS) - 1))


def _set_zero(measures: dict[str, Float64], token: NDArray[np.int64]) -> None:
    """Set the measures of full distributions to 0 at these tokens."""
    for name, values in measures.items():
        if not TOKEN_MEASURES[name].of_realised_token:
            values[token] = 0.0

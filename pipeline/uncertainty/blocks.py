"""One pass over a decode store: blocks of whole hypotheses with their token-level measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ConfigError
from pipeline.statistics.kernel import Array, Float64, fused_statistics
from pipeline.store import Store, TokenStatistics
from pipeline.store.statistics import STATISTICS
from pipeline.uncertainty.token import (
    TOKEN_MEASURES,
    Position,
    measures,
    position,
    prefix_logprob,
)

_BLOCK_BYTES = 2**25


@dataclass(frozen=True)
class Block:
    """Hypotheses [first : last] of a store.

    token_offset [hypothesis + 1] counts from the block's first token; token_id [token]; measures:
    name -> [token] in nats.
    """

    first: int
    last: int
    token_offset: NDArray[np.int64]
    token_id: NDArray[np.int32]
    position: Position
    measures: dict[str, Float64]


def measured_blocks(
    store: Store, members: Sequence[int] | None = None, eos: str = "include"
) -> Iterator[Block]:
    """The token-level measures of a whole store, in blocks of bounded memory.

    members: places of the members to use, all by default; a subset gets the measures of full
    distributions from a `full` store only. eos: `zero` gives the last token of a finished
    hypothesis no uncertainty in these measures, except under teacher forcing (the released code's
    rule). Raises ConfigError for members that the store does not have and for another eos.
    """
    if eos not in ("include", "zero"):
        raise ConfigError(f"eos must be include or zero, got {eos!r}")
    chosen = chosen_members(store, members)
    complete = has_distributions(store, members)
    finished = store.read("/hypothesis/finished").astype(bool)
    silent_end = eos == "zero" and store.regime != "teacher_forcing"
    for first, last in _ranges(store, members is not None and complete):
        start, stop = int(store.token_offset[first]), int(store.token_offset[last])
        offset = store.token_offset[first : last + 1] - start
        if members is None:
            statistics = _stored(store, start, stop)
        elif complete:
            statistics = _recomputed(store, start, stop, offset, chosen)
        else:
            statistics = _only_logprob(store, start, stop, chosen)
        here = position(statistics, offset)
        values = measures(here, members_only=not complete)
        if silent_end:
            _silence(values, offset[1:][finished[first:last]] - 1)
        yield Block(first, last, offset, store.read("/token/id", start, stop), here, values)


def chosen_members(store: Store, members: Sequence[int] | None) -> list[int]:
    """Places of the members to use; ConfigError unless they are distinct members of the store."""
    if members is None:
        return list(range(store.n_member))
    chosen = list(members)
    if (
        not chosen
        or len(set(chosen)) < len(chosen)
        or not set(chosen) <= set(range(store.n_member))
    ):
        raise ConfigError(
            f"members must be distinct places in [0, {store.n_member}) of {store.path}, "
            f"got {chosen}"
        )
    return chosen


def has_distributions(store: Store, members: Sequence[int] | None) -> bool:
    """Whether measures of full distributions can be had for these members."""
    return members is None or store.dump == "full"


def _ranges(store: Store, from_full: bool) -> Iterator[tuple[int, int]]:
    """Ranges of hypotheses whose tokens fit a block; a longer hypothesis is a block of its own."""
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


def _only_logprob(store: Store, start: int, stop: int, chosen: list[int]) -> TokenStatistics:
    absent: NDArray[Any] = np.empty((0,), np.float32)
    logprob = store.read("/token/logprob", start, stop)[:, chosen]
    return TokenStatistics(logprob, *[absent] * (len(STATISTICS) - 1))


def _silence(values: dict[str, Float64], end: NDArray[np.int64]) -> None:
    for name, measure in TOKEN_MEASURES.items():
        if measure.full_distribution and name in values:
            values[name][end] = 0.0

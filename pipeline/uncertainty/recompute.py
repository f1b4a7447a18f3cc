"""The stored statistics against the token distributions, where the store keeps those."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.store import Store
from pipeline.uncertainty.blocks import Block
from pipeline.uncertainty.kernel import Array, Float64, fused_statistics
from pipeline.uncertainty.token import measures
from pipeline.uncertainty.topk import token_bounds

# Agreement of statistics with `full`: float32, and float16 with its spacing of 0.008 nats at -12.
_SINGLE_NATS = 1e-4
_HALF_NATS = 1e-2
_SLICE_BYTES = 2**25


def recomputed_differences(store: Store, block: Block) -> Iterator[tuple[str, Float64, float]]:
    """How far the block's numbers are from the distributions: name, difference [token], tolerance.

    Of a `full` store: each statistic against itself, recomputed; of a `topk` store: each measure
    against the interval that it must lie in; of `statistics`: nothing. The log-probability of the
    token that stands there comes first, [token, member]. In nats, relative above 1.
    """
    if store.dump == "statistics":
        return
    width = store.vocab_size if store.dump == "full" else store.read("/token/topk_id", 0, 1).size
    step = max(1, _SLICE_BYTES // (8 * store.n_member * max(1, width)))
    first = int(store.token_offset[block.first])
    for start in range(0, int(block.token_offset[-1]), step):
        rows = slice(start, min(start + step, int(block.token_offset[-1])))
        compare = _full_differences if store.dump == "full" else _topk_differences
        yield from compare(store, block, rows, first)


def _full_differences(
    store: Store, block: Block, rows: slice, first: int
) -> Iterator[tuple[str, Float64, float]]:
    full = store.read("/token/full_logprob", first + rows.start, first + rows.stop)
    token = block.token_id[rows, np.newaxis, np.newaxis]
    logprob = np.take_along_axis(full, token, axis=2)[:, :, 0].astype(np.float64)
    # Weights are as good as prefixes here: both give the same softmax.
    recomputed = fused_statistics(full, block.position.log_weight[rows])
    for name, expected in {"logprob": logprob, **recomputed}.items():
        stored = getattr(block.position.statistics, name)[rows]
        difference = _difference(stored, expected, expected)
        yield name, difference, _HALF_NATS if full.dtype.itemsize == 2 else _SINGLE_NATS


def _topk_differences(
    store: Store, block: Block, rows: slice, first: int
) -> Iterator[tuple[str, Float64, float]]:
    token_id, topk, tail = (
        store.read(f"/token/{name}", first + rows.start, first + rows.stop)
        for name in ("topk_id", "topk_logprob", "tail_logprob")
    )
    logprob = block.position.statistics.logprob[rows]
    # The token that stands there is one of the k, or no likelier than all the others together.
    same = (token_id == block.token_id[rows, np.newaxis])[:, np.newaxis]
    own = np.where(same, topk, -np.inf).max(axis=2)
    listed = same.any(axis=2)
    low, high = np.where(listed, own, -np.inf), np.where(listed, own, tail)
    yield "logprob", _difference(logprob, low, high), _SINGLE_NATS
    bounds = token_bounds(topk, tail, logprob, block.position.log_weight[rows], store.vocab_size)
    # Afresh: the block's own may have been set to 0 at the end of a hypothesis.
    values = measures(block.position)
    for name, (low, high) in bounds.items():
        yield name, _difference(values[name][rows], low, high), _SINGLE_NATS


def _difference(values: Array, low: Float64, high: Float64) -> Float64:
    """Distance of values from [low, high]: 0 within, also where both are the same infinity."""
    nearest = np.clip(values, low, high)
    with np.errstate(invalid="ignore"):
        distance = np.abs(values - nearest) / np.maximum(1.0, np.abs(nearest))
    return np.where(values == nearest, 0.0, np.where(np.isnan(distance), np.inf, distance))

"""Checks of a store: values that no ensemble can have, and numbers that should agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.statistics.kernel import fused_statistics
from pipeline.statistics.posterior import Array, Float64
from pipeline.store import Store
from pipeline.store.scores import ScoreComparison, compare_scores
from pipeline.uncertainty.blocks import TokenBlock, decoding_posteriors
from pipeline.uncertainty.hypothesis import HypothesisSums
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES, Range
from pipeline.uncertainty.token import all_measures, token_bounds

# Two numbers rounded to half precision differ by up to this much, so a valid store can exceed a
# limit by as much. `StoreChecks` reports much smaller errors, which do not stop the run.
_HALF_PRECISION_NATS = 2e-2


def reject_out_of_range(store: Store, block: TokenBlock) -> None:
    """Raise StoreError for a token measure that is NaN or outside its range in the registry.

    The message names file, task, test set, sentence, hypothesis, token and measure.
    """
    highest = float(np.log(store.vocab_size)) + _HALF_PRECISION_NATS
    for name, values in block.measures.items():
        _reject(store, block, name, np.isnan(values), "must be a number")
        allowed = TOKEN_MEASURES[name].range
        if allowed is not Range.REAL:
            _reject(store, block, name, values < -_HALF_PRECISION_NATS, "must be at least 0")
        if allowed is Range.ENTROPY:
            rule = f"must be at most ln(vocab_size={store.vocab_size})"
            _reject(store, block, name, values > highest, rule)


def reject_nan(store: Store, name: str, values: Float64) -> None:
    """Raise StoreError, naming file, task, test set and sentence, for NaN in values [sentence].

    Sentences without a hypothesis have no value and are ignored.
    """
    is_wrong = np.isnan(values) & (np.diff(store.hypothesis_offset) > 0)
    if is_wrong.any():
        where = store.place("/sentence/id", [int(is_wrong.argmax())])
        raise StoreError(f"{store.path}: {where}: {name} must be a number (got nan). {_REMEDY}")


def reject_undrawable(store: Store, logprob: Float64) -> None:
    """Raise StoreError, naming the hypothesis, where the member that drew it excludes it.

    logprob [hypothesis]: ln P by the member that drew it.
    """
    is_wrong = np.isneginf(logprob)
    if is_wrong.any():
        where = store.place("/hypothesis/member", [int(is_wrong.argmax())])
        raise StoreError(
            f"{store.path}: {where}: the member that drew it gives it probability 0. {_REMEDY}"
        )


_REMEDY = "Write the store again from the models."


def _reject(
    store: Store, block: TokenBlock, name: str, is_wrong: NDArray[np.bool_], rule: str
) -> None:
    if is_wrong.any():
        token = int(is_wrong.argmax())
        row = int(store.token_offset[block.first]) + token
        where = store.place("/token/id", [row])
        value = float(block.measures[name][token])
        raise StoreError(f"{store.path}: {where}: {name} {rule} (got {value:.6g}). {_REMEDY}")


# Agreement of statistics with `full` in float32 and in float16, whose spacing at -12 is 0.008 nats.
_SINGLE_NATS = 1e-4
_HALF_NATS = 1e-2
_SLICE_BYTES = 2**25


def recomputed_differences(store: Store, block: TokenBlock) -> Iterator[tuple[str, Float64, float]]:
    """Compare the numbers of a block with the stored distributions.

    Yields name, difference [token] and tolerance. In a `full` store each statistic is compared with
    itself, recomputed; in a `topk` store each measure with its bounds; a `statistics` store has
    nothing to compare. The log-prob of the realised token comes first, [token, member]. Differences
    are in nats, and relative above 1.
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
    store: Store, block: TokenBlock, rows: slice, first: int
) -> Iterator[tuple[str, Float64, float]]:
    full = store.read("/token/full_logprob", first + rows.start, first + rows.stop)
    token = block.token_id[rows, np.newaxis, np.newaxis]
    logprob = np.take_along_axis(full, token, axis=2)[:, :, 0].astype(np.float64)
    # Log-weights can be used in place of prefix log-probs, since both have the same softmax.
    recomputed = fused_statistics(full, block.statistics.log_weight[rows])
    tolerance = _HALF_NATS if full.dtype.itemsize == 2 else _SINGLE_NATS
    for name, expected in {"logprob": logprob, **recomputed}.items():
        stored = getattr(block.statistics.statistics, name)[rows]
        yield name, _distance(stored, expected, expected), tolerance


def _topk_differences(
    store: Store, block: TokenBlock, rows: slice, first: int
) -> Iterator[tuple[str, Float64, float]]:
    token_id, topk, tail = (
        store.read(f"/token/{name}", first + rows.start, first + rows.stop)
        for name in ("topk_id", "topk_logprob", "tail_logprob")
    )
    logprob = block.statistics.statistics.logprob[rows]
    # The realised token is one of the k, or at most as likely as all tokens of the tail together.
    is_realised = (token_id == block.token_id[rows, np.newaxis])[:, np.newaxis]
    realised = np.where(is_realised, topk, -np.inf).max(axis=2)
    is_listed = is_realised.any(axis=2)
    low, high = np.where(is_listed, realised, -np.inf), np.where(is_listed, realised, tail)
    yield "logprob", _distance(logprob, low, high), _SINGLE_NATS
    bounds = token_bounds(topk, tail, logprob, block.statistics.log_weight[rows], store.vocab_size)
    # Computed again, because the measures of the block may have been set to 0 at EOS.
    values = all_measures(block.statistics)
    for name, (low, high) in bounds.items():
        yield name, _distance(values[name][rows], low, high), _SINGLE_NATS


def _distance(values: Array, low: Float64, high: Float64) -> Float64:
    """Return the distance of values from [low, high]; 0 where all are the same infinity."""
    nearest = np.clip(values, low, high)
    with np.errstate(invalid="ignore"):
        distance = np.abs(values - nearest) / np.maximum(1.0, np.abs(nearest))
    return np.where(values == nearest, 0.0, np.where(np.isnan(distance), np.inf, distance))


# Error of a difference of two entropies that are stored as float32.
_SINGLE_PRECISION_NATS = 1e-4


class StoreChecks:
    """Collects, block by block, what checks.json reports on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lowest: dict[str, float] = {}
        self._negative: dict[str, int] = {}
        self._infinite: dict[str, int] = {}
        self._largest: dict[str, float] = {}
        self._tokens_off = 0
        self._same = {(a, b): True for b in range(store.n_member) for a in range(b)}

    def add(self, block: TokenBlock) -> None:
        """Add the next block of hypotheses."""
        for name, values in block.measures.items():
            lowest = float(values.min())
            self._lowest[name] = min(lowest, self._lowest.get(name, np.inf))
            negative = int((values < -_SINGLE_PRECISION_NATS).sum())
            self._negative[name] = self._negative.get(name, 0) + negative
            infinite = int(np.isinf(values).sum())
            if infinite:
                self._infinite[name] = self._infinite.get(name, 0) + infinite
        for name, difference, tolerance in recomputed_differences(self._store, block):
            self._tokens_off += int((difference > tolerance).sum())
            self._largest[name] = max(self._largest.get(name, 0.0), float(difference.max()))
        logprob = block.statistics.statistics.logprob
        entropy = block.statistics.statistics.entropy_member
        for (a, b), same in self._same.items():
            self._same[a, b] = same and bool(
                np.array_equal(logprob[:, a], logprob[:, b])
                and np.array_equal(entropy[:, a], entropy[:, b])
            )

    def report(self, sums: HypothesisSums) -> dict[str, Any]:
        """Return the results as plain values; `ok` is true if all checks pass."""
        store = self._store
        finished = store.read("/hypothesis/finished")
        score = self._score(sums)
        not_negative = self._lowest_divergences(may_be_negative=False)
        has_negative = any(lowest["negative_tokens"] for lowest in not_negative.values())
        return {
            "ok": score.get("ok", True) and not has_negative and not self._tokens_off,
            "sentences": store.n_sentence,
            "sentences_without_hypothesis": int((np.diff(store.hypothesis_offset) == 0).sum()),
            "hypotheses": store.n_hypothesis,
            "unfinished_hypotheses": int((finished == 0).sum()),
            "tokens": store.n_token,
            "score": score,
            "not_negative": not_negative,
            "may_be_negative": self._lowest_divergences(may_be_negative=True),
            "recomputed": self._recomputed(),
            "infinite_tokens": self._infinite,
            "identical_members": [
                [store.members[a], store.members[b]]
                for (a, b), same in self._same.items()
                if same and store.n_token
            ],
        }

    def _lowest_divergences(self, *, may_be_negative: bool) -> dict[str, Any]:
        """Return the lowest value of each divergence, and how many tokens are below 0."""
        return {
            name: {
                "lowest_nats": self._lowest[name] if np.isfinite(self._lowest[name]) else None,
                "negative_tokens": self._negative[name],
            }
            for name, measure in TOKEN_MEASURES.items()
            if name in self._lowest
            and measure.is_divergence
            and (measure.range is Range.REAL) == may_be_negative
        }

    def _recomputed(self) -> dict[str, Any]:
        """Return how far the stored numbers are from the stored distributions."""
        if self._store.dump == "statistics":
            return {"reason": "the store keeps no distributions"}
        return {
            "from": self._store.dump,
            "largest_difference_nats": {
                name: value if np.isfinite(value) else None for name, value in self._largest.items()
            },
            "tokens_off": self._tokens_off,
        }

    def _score(self, sums: HypothesisSums) -> dict[str, Any]:
        """Compare the search scores with the summed log-probs of the tokens."""
        store = self._store
        length_penalty = store.attributes.get("length_penalty")
        if length_penalty is None or not decoding_posteriors(store):
            return {"reason": "the store names no length penalty or no posterior that decoded"}
        expected = sums.logprob[decoding_posteriors(store)[0]] / sums.length**length_penalty
        score = store.read("/hypothesis/score").astype(np.float64)
        comparison = compare_scores(score, expected)
        return {
            "largest_relative_difference": comparison.largest,
            "hypotheses_off": comparison.n_off,
            "ok": comparison.n_off == 0,
        }


def inconsistencies(report: Mapping[str, Any]) -> Iterator[str]:
    """Say which numbers of a report are inconsistent, how many and by how much; none if `ok`."""
    score = report["score"]
    if not score.get("ok", True):
        off, largest = score["hypotheses_off"], score["largest_relative_difference"]
        yield ScoreComparison(report["hypotheses"], off, largest).summary()
    for name, lowest in report["not_negative"].items():
        if lowest["negative_tokens"]:
            count = f"{lowest['negative_tokens']} of {report['tokens']} tokens"
            yield f"{name} is negative at {count}, down to {lowest['lowest_nats']:.2g} nats"
    tokens_off = report["recomputed"].get("tokens_off", 0)
    if tokens_off:
        largest = report["recomputed"]["largest_difference_nats"]
        worst = max(largest, key=lambda name: inf if largest[name] is None else largest[name])
        size = "infinitely" if largest[worst] is None else f"by {largest[worst]:.2g} nats"
        yield (
            f"{tokens_off} stored numbers differ from those of the stored distributions, "
            f"most of all {worst} ({size})"
        )

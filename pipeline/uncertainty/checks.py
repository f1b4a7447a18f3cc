"""What a store's numbers must keep, proved on each store and written beside its results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.statistics.kernel import Array, Float64, fused_statistics
from pipeline.store import Store
from pipeline.store.reader import place_of
from pipeline.uncertainty.blocks import Block
from pipeline.uncertainty.hypothesis import HypothesisTotals, decoding_posteriors
from pipeline.uncertainty.token import TOKEN_MEASURES, measures
from pipeline.uncertainty.topk import token_bounds

MAY_BE_NEGATIVE = tuple(name for name, one in TOKEN_MEASURES.items() if one.may_be_negative)
# A sound store may be this far off: two of its numbers, each rounded in half precision. Of float32
# `StoreChecks` tells much smaller faults, which stop nothing.
_HALF_PRECISION_NATS = 2e-2


def refuse_impossible(store: Store, block: Block) -> None:
    """Raise StoreError for a token measure that is NaN, below 0, or an entropy above ln of vocab.

    It names file, task, test set, sentence, hypothesis, token and measure. Those of
    `MAY_BE_NEGATIVE` pass below 0.
    """
    highest = float(np.log(store.vocab_size)) + _HALF_PRECISION_NATS
    for name, values in block.measures.items():
        _refuse(store, block, name, np.isnan(values), "a number")
        if name not in MAY_BE_NEGATIVE:
            _refuse(store, block, name, values < -_HALF_PRECISION_NATS, ">= 0")
        if name == "data" or name.endswith("_entropy"):
            rule = f"<= ln(vocab_size={store.vocab_size})"
            _refuse(store, block, name, values > highest, rule)


def refuse_nan(store: Store, name: str, values: Float64) -> None:
    """Raise StoreError, naming file, task, set and sentence, for a measure [sentence] that is NaN.

    A sentence without a hypothesis has none and is passed over.
    """
    broken = np.isnan(values) & (np.diff(store.hypothesis_offset) > 0)
    if broken.any():
        place = place_of(store, "/sentence/id", [int(broken.argmax())])
        raise StoreError(f"{store.path}: {place}: {name} must be a number, got nan")


def refuse_undrawable(store: Store, logprob: Float64) -> None:
    """Raise StoreError, naming the hypothesis, where its ln P by the member that drew it is -inf.

    logprob [hypothesis].
    """
    broken = np.isneginf(logprob)
    if broken.any():
        place = place_of(store, "/hypothesis/member", [int(broken.argmax())])
        raise StoreError(
            f"{store.path}: {place}: the member that drew it must give it a probability above 0, "
            f"got 0"
        )


def _refuse(store: Store, block: Block, name: str, broken: NDArray[np.bool_], rule: str) -> None:
    if broken.any():
        token = int(broken.argmax())
        row = int(store.token_offset[block.first]) + token
        place = place_of(store, "/token/id", [row])
        value = float(block.measures[name][token])
        raise StoreError(f"{store.path}: {place}: {name} must be {rule}, got {value:.6g}")


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


# Agreement of decoding and re-scoring, design of the store: float32 log-probabilities added up.
_SCORE_TOLERANCE_NATS = 1e-4
# Entropies are stored as float32; a difference of two of them is this far from the exact one. What
# no rounding explains, that in half precision included, `refuse_impossible` refuses.
_SINGLE_PRECISION_NATS = 1e-4
# Divergences, of which the lowest value is reported.
_DIVERGENCES = (
    *("prex_mi", "prex_epkl", "prex_rmi"),
    *("expr_mi_w", "expr_epkl_w", "expr_rmi", "expr_mi", "expr_epkl"),
)


class StoreChecks:
    """Collects, block by block, what is reported on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lowest: dict[str, float] = {}
        self._negative: dict[str, int] = {}
        self._infinite: dict[str, int] = {}
        n_member = store.n_member
        self._largest: dict[str, float] = {}
        self._tokens_off = 0
        self._same = {(a, b): True for b in range(n_member) for a in range(b)}

    def add(self, block: Block) -> None:
        """Take in the next block of hypotheses."""
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
        logprob = block.position.statistics.logprob
        entropy = block.position.statistics.entropy_member
        for (a, b), same in self._same.items():
            self._same[a, b] = same and bool(
                np.array_equal(logprob[:, a], logprob[:, b])
                and np.array_equal(entropy[:, a], entropy[:, b])
            )

    def report(self, totals: HypothesisTotals) -> dict[str, Any]:
        """The findings as plain values; `ok` says that no rule is broken."""
        store = self._store
        finished = store.read("/hypothesis/finished")
        score = self._score(totals)
        not_negative = self._signs(may_be_negative=False)
        broken = any(one["negative_tokens"] for one in not_negative.values())
        return {
            "ok": score.get("ok", True) and not broken and not self._tokens_off,
            "sentences": store.n_sentence,
            "sentences_without_hypothesis": int((np.diff(store.hypothesis_offset) == 0).sum()),
            "hypotheses": store.n_hypothesis,
            "unfinished_hypotheses": int((finished == 0).sum()),
            "tokens": store.n_token,
            "score": score,
            "not_negative": not_negative,
            "may_be_negative": self._signs(may_be_negative=True),
            "recomputed": self._recomputed(),
            "infinite_tokens": self._infinite,
            "identical_members": [
                [store.members[a], store.members[b]]
                for (a, b), same in self._same.items()
                if same and store.n_token
            ],
        }

    def _signs(self, *, may_be_negative: bool) -> dict[str, Any]:
        """Of the divergences of this sign, the lowest value and how many tokens are below 0."""
        return {
            name: {
                "lowest_nats": self._lowest[name] if np.isfinite(self._lowest[name]) else None,
                "negative_tokens": self._negative[name],
            }
            for name in _DIVERGENCES
            if name in self._lowest and TOKEN_MEASURES[name].may_be_negative == may_be_negative
        }

    def _recomputed(self) -> dict[str, Any]:
        """How the stored numbers agree with the stored distributions."""
        if self._store.dump == "statistics":
            return {"reason": "the store keeps no distributions"}
        return {
            "from": self._store.dump,
            "largest_difference_nats": {
                name: value if np.isfinite(value) else None for name, value in self._largest.items()
            },
            "tokens_off": self._tokens_off,
        }

    def _score(self, totals: HypothesisTotals) -> dict[str, Any]:
        """Whether the tokens' log-probabilities add up to the search score."""
        store = self._store
        length_penalty = store.attributes.get("length_penalty")
        if length_penalty is None or not decoding_posteriors(store):
            return {"reason": "the store names no length penalty or no posterior that decoded"}
        expected = totals.logprob[decoding_posteriors(store)[0]] / totals.length**length_penalty
        score = store.read("/hypothesis/score").astype(np.float64)
        both = np.isfinite(expected) & np.isfinite(score)
        scale = np.maximum(1.0, np.abs(expected[both]))
        differences = np.abs(score[both] - expected[both]) / scale
        wrong = int((differences > _SCORE_TOLERANCE_NATS).sum())
        wrong += int((score[~both] != expected[~both]).sum())
        largest = float(differences.max(initial=0.0))
        return {"largest_relative_difference": largest, "hypotheses_off": wrong, "ok": wrong == 0}

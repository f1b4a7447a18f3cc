"""What a store's numbers must keep, proved on each store and written beside its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.store import Store
from pipeline.uncertainty.blocks import Block
from pipeline.uncertainty.hypothesis import HypothesisTotals, decoding_posteriors
from pipeline.uncertainty.recompute import recomputed_differences
from pipeline.uncertainty.token import TOKEN_MEASURES

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

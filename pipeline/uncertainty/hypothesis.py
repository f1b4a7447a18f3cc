"""What of a hypothesis enters a sequence-level measure: totals over its tokens, and their forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.store import Store
from pipeline.uncertainty.blocks import Block, chosen_members, has_distributions
from pipeline.uncertainty.kernel import Float64, log_mean

POSTERIORS = ("prex", "expr")
# Token measures that are added up along a hypothesis for the chain-rule forms.
CHAIN = (
    *(f"{posterior}_{one}" for posterior in POSTERIORS for one in ("entropy", "mi", "epkl", "rmi")),
    "expr_mi_w",
    "expr_epkl_w",
)


def decoding_posteriors(store: Store) -> tuple[str, ...]:
    """The posteriors that decoded: both, being the same, for a single member; none for several."""
    if store.n_member == 1:
        return POSTERIORS
    return (store.combination,) if store.combination in POSTERIORS else ()


@dataclass(frozen=True)
class HypothesisTotals:
    """Sums over the tokens of each hypothesis, in nats.

    length [hypothesis] counts EOS; logprob_member [hypothesis, member]; logprob: posterior ->
    [hypothesis]; chain: token measure -> [hypothesis].
    """

    length: Float64
    logprob_member: Float64
    logprob: dict[str, Float64]
    chain: dict[str, Float64]


class TotalsBuilder:
    """Adds up blocks, in order, into the totals of all hypotheses."""

    def __init__(self, store: Store, members: Sequence[int] | None = None) -> None:
        self._length = np.diff(store.token_offset).astype(np.float64)
        self._n_member = len(chosen_members(store, members))
        self._chain = CHAIN if has_distributions(store, members) else ()
        self._sums: list[Float64] = []

    def add(self, block: Block) -> None:
        """Take in the next block of hypotheses."""
        columns = [block.position.statistics.logprob, 0.0 - block.measures["prex_score"]]
        columns += [block.measures[name] for name in self._chain]
        values = np.column_stack(columns).astype(np.float64, copy=False)
        self._sums.append(np.add.reduceat(values, block.token_offset[:-1], axis=0))

    def totals(self) -> HypothesisTotals:
        """The totals, once all blocks of the store have been added."""
        n_member = self._n_member
        sums = np.concatenate([np.empty((0, n_member + 1 + len(self._chain))), *self._sums])
        member = sums[:, :n_member]
        return HypothesisTotals(
            length=self._length,
            logprob_member=member,
            # eqn:ensemble-combinations: a mean of products, a product of means
            logprob={"expr": log_mean(member, -np.log(n_member)), "prex": sums[:, n_member]},
            chain={name: sums[:, n_member + 1 + place] for place, name in enumerate(self._chain)},
        )


@dataclass(frozen=True)
class Form:
    """A value [hypothesis] whose weighted mean over hypotheses is a sequence-level measure.

    rate: it is divided by the length under length normalisation; members_only: it needs the
    log-probabilities of the tokens alone.
    """

    compute: Callable[[HypothesisTotals], Float64]
    rate: bool
    members_only: bool

    def value(self, totals: HypothesisTotals, length_norm: bool) -> Float64:
        """The value of every hypothesis, [hypothesis], divided by its length if asked."""
        value = self.compute(totals)
        return value / totals.length if length_norm and self.rate else value


def _entropy(posterior: str) -> Callable[[HypothesisTotals], Float64]:
    return lambda totals: 0.0 - totals.logprob[posterior]


def _reverse_mutual_information(posterior: str) -> Callable[[HypothesisTotals], Float64]:
    def compute(totals: HypothesisTotals) -> Float64:
        joint = totals.logprob[posterior]
        possible = ~np.isneginf(joint)
        return np.where(
            possible, np.where(possible, joint, 0.0) - totals.logprob_member.mean(axis=1), 0.0
        )

    return compute


def _chain(name: str) -> Callable[[HypothesisTotals], Float64]:
    return lambda totals: totals.chain[name]


def _variance(values: Float64) -> Float64:
    """Variance over members; +inf where only some log-probabilities are -inf, 0 where all are."""
    infinite = np.isneginf(values)
    some: NDArray[np.bool_] = np.any(infinite, axis=1)
    spread = np.where(some[:, np.newaxis], 0.0, values).var(axis=1)
    return np.where(some & ~infinite.all(axis=1), np.inf, spread)


def _rate_member(totals: HypothesisTotals) -> Float64:
    rate: Float64 = totals.logprob_member / totals.length[:, np.newaxis]
    return rate


def log_variance(totals: HypothesisTotals) -> Float64:
    """ln of the variance over members of P(y | x, theta_m), [hypothesis], without underflow."""
    highest = totals.logprob_member.max(axis=1)
    shift = np.where(np.isneginf(highest), 0.0, highest)
    with np.errstate(divide="ignore"):
        scaled = np.log(np.exp(totals.logprob_member - shift[:, np.newaxis]).var(axis=1))
    result: Float64 = scaled + 2 * shift
    return result


# Source: eqn-apn:sequence-entropy-chain-IW to eqn-apn:sequence-mkl-seq-IW; the variances: the
# section on heuristic measures (apn:xbleu).
FORMS: dict[str, Form] = {
    **{f"{name}_c": Form(_chain(name), rate=True, members_only=False) for name in CHAIN},
    **{f"{p}_entropy_s": Form(_entropy(p), rate=True, members_only=True) for p in POSTERIORS},
    **{
        f"{p}_rmi_s": Form(_reverse_mutual_information(p), rate=True, members_only=True)
        for p in POSTERIORS
    },
    "var_p": Form(lambda t: np.exp(t.logprob_member).var(axis=1), False, members_only=True),
    "var_p_ln": Form(lambda t: np.exp(_rate_member(t)).var(axis=1), False, members_only=True),
    "var_logp": Form(lambda t: _variance(t.logprob_member), False, members_only=True),
    "var_logp_ln": Form(lambda t: _variance(_rate_member(t)), False, members_only=True),
}

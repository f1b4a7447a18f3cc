"""What of a hypothesis enters a sequence-level measure: totals over its tokens, and their forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.kernel import Float64, log_mean
from pipeline.store import Store
from pipeline.uncertainty.blocks import Block, chosen_members, has_distributions

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


@dataclass(frozen=True)
class Selection:
    """The hypotheses of each group, side by side.

    hypothesis [chosen]: their places in the store; start [group]: where a group begins; group
    [group]: which group that is (a sentence, or a sentence and a member); n_group: of all, those
    without a hypothesis included.
    """

    hypothesis: NDArray[np.int64]
    start: NDArray[np.int64]
    group: NDArray[np.int64]
    n_group: int


def first_hypotheses(hypothesis_offset: NDArray[np.int64], beam: int) -> Selection:
    """The first `beam` hypotheses of every sentence, all of them where there are fewer.

    hypothesis_offset [sentence + 1].
    """
    n_hypothesis = np.diff(hypothesis_offset)
    sentence = np.repeat(np.arange(len(n_hypothesis)), n_hypothesis)
    rank = np.arange(len(sentence)) - hypothesis_offset[:-1][sentence]
    return _selection(np.flatnonzero(rank < beam), sentence[rank < beam], len(n_hypothesis))


def first_of_member(
    hypothesis_offset: NDArray[np.int64], member: NDArray[np.int16], n_member: int, beam: int
) -> Selection:
    """The first `beam` hypotheses that each member drew for every sentence.

    member [hypothesis]; group = sentence * n_member + member.
    """
    n_hypothesis = np.diff(hypothesis_offset)
    sentence = np.repeat(np.arange(len(n_hypothesis)), n_hypothesis)
    group = sentence * n_member + member
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank = np.arange(len(ordered)) - np.repeat(first, np.diff(first, append=len(ordered)))
    kept = rank < beam
    return _selection(order[kept], ordered[kept], len(n_hypothesis) * n_member)


def importance(logprob: Float64, selection: Selection, temperature: float) -> Float64:
    """ln pi_b, softmax within each group of ln P(y_b) / T: [hypothesis] to [chosen].

    Uniform where every hypothesis of a group has probability 0. Source:
    eqn:sequence-entropy-seq-bs.
    """
    scaled = logprob[selection.hypothesis] / temperature
    if not len(scaled):
        return scaled
    sizes = np.diff(selection.start, append=len(scaled))
    highest = np.repeat(np.maximum.reduceat(scaled, selection.start), sizes)
    scaled = np.where(np.isneginf(highest), 0.0, scaled)
    scaled = scaled - np.where(np.isneginf(highest), 0.0, highest)
    total = np.repeat(np.add.reduceat(np.exp(scaled), selection.start), sizes)
    log_pi: Float64 = scaled - np.log(total)
    return log_pi


def uniform(selection: Selection) -> Float64:
    """ln of equal weights within each group, [chosen]."""
    sizes = np.diff(selection.start, append=len(selection.hypothesis))
    return np.repeat(-np.log(sizes), sizes)


def weighted_mean(log_weight: Float64, value: Float64, selection: Selection) -> Float64:
    """Sum of weight * value in each group, [chosen] to [group of all]; NaN for a group without any.

    A value of +inf counts wherever its weight is not exactly 0.
    """
    mean = np.full(selection.n_group, np.nan)
    if len(value):
        with np.errstate(invalid="ignore"):
            terms = np.exp(log_weight) * value
        terms = np.where(np.isinf(value), np.where(np.isneginf(log_weight), 0.0, value), terms)
        mean[selection.group] = np.add.reduceat(terms, selection.start)
    return mean


def log_weighted_mean(log_weight: Float64, log_value: Float64, selection: Selection) -> Float64:
    """ln of `weighted_mean`, from logarithms: [chosen] to [group of all], without underflow."""
    mean = np.full(selection.n_group, np.nan)
    terms = log_weight + log_value
    if len(terms):
        sizes = np.diff(selection.start, append=len(terms))
        highest = np.maximum.reduceat(terms, selection.start)
        shift = np.where(np.isneginf(highest), 0.0, highest)
        total = np.add.reduceat(np.exp(terms - np.repeat(shift, sizes)), selection.start)
        with np.errstate(divide="ignore"):
            mean[selection.group] = np.log(total) + shift
    return mean


def _selection(hypothesis: NDArray[np.int64], group: NDArray[np.int64], n_group: int) -> Selection:
    start = np.flatnonzero(np.diff(group, prepend=-1))
    return Selection(hypothesis, start, group[start], n_group)

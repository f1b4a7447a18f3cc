"""Select the hypotheses of a sentence that are averaged, and weight them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.posterior import Float64


@dataclass(frozen=True)
class Selection:
    """The selected hypotheses, ordered by group: a sentence, or a sentence and a member.

    hypothesis [selected]: rows in the store; start [group]: first index of each group in
    `hypothesis`; group [group]: number of each group; n_group: number of all groups, including
    those without a hypothesis.
    """

    hypothesis: NDArray[np.int64]
    start: NDArray[np.int64]
    group: NDArray[np.int64]
    n_group: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of hypotheses of each group, [group]."""
        return np.diff(self.start, append=len(self.hypothesis))


def first_hypotheses(hypothesis_offset: NDArray[np.int64], beam: int) -> Selection:
    """Select the first `beam` hypotheses of each sentence, or all of them if there are fewer.

    hypothesis_offset [sentence + 1].
    """
    n_hypothesis = np.diff(hypothesis_offset)
    sentence = np.repeat(np.arange(len(n_hypothesis)), n_hypothesis)
    rank = np.arange(len(sentence)) - hypothesis_offset[:-1][sentence]
    return selection_of(np.flatnonzero(rank < beam), sentence[rank < beam], len(n_hypothesis))


def first_of_member(
    hypothesis_offset: NDArray[np.int64], member: NDArray[np.int16], n_member: int, beam: int
) -> Selection:
    """Select the first `beam` hypotheses that each member drew for each sentence.

    member [hypothesis]; a group is sentence * n_member + member.
    """
    n_hypothesis = np.diff(hypothesis_offset)
    sentence = np.repeat(np.arange(len(n_hypothesis)), n_hypothesis)
    group = sentence * n_member + member
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank = np.arange(len(ordered)) - np.repeat(first, np.diff(first, append=len(ordered)))
    kept = rank < beam
    return selection_of(order[kept], ordered[kept], len(n_hypothesis) * n_member)


def importance(logprob: Float64, selection: Selection, temperature: float) -> Float64:
    """Return ln pi_b, the log-softmax of ln P(y_b) / T within each group, [selected].

    logprob [hypothesis]. Weights are uniform where every hypothesis of a group has probability 0.
    Source: eqn:sequence-entropy-seq-bs.
    """
    scaled = logprob[selection.hypothesis] / temperature
    if not len(scaled):
        return scaled
    highest = np.repeat(np.maximum.reduceat(scaled, selection.start), selection.sizes)
    scaled = np.where(np.isneginf(highest), 0.0, scaled)
    scaled = scaled - np.where(np.isneginf(highest), 0.0, highest)
    total = np.add.reduceat(np.exp(scaled), selection.start)
    log_pi: Float64 = scaled - np.log(np.repeat(total, selection.sizes))
    return log_pi


def uniform(selection: Selection) -> Float64:
    """Return the log of equal weights within each group, [selected]."""
    return np.repeat(-np.log(selection.sizes), selection.sizes)


def weighted_mean(log_weight: Float64, value: Float64, selection: Selection) -> Float64:
    """Sum weight * value over each group, [selected] to [n_group]; NaN for an empty group.

    An infinite value counts unless its weight is exactly 0.
    """
    mean = np.full(selection.n_group, np.nan)
    if len(value):
        with np.errstate(invalid="ignore"):
            terms = np.exp(log_weight) * value
        terms = np.where(np.isinf(value), np.where(np.isneginf(log_weight), 0.0, value), terms)
        mean[selection.group] = np.add.reduceat(terms, selection.start)
    return mean


def log_weighted_mean(log_weight: Float64, log_value: Float64, selection: Selection) -> Float64:
    """Return ln of `weighted_mean` from logarithms, without underflow, [selected] to [n_group]."""
    mean = np.full(selection.n_group, np.nan)
    terms = log_weight + log_value
    if len(terms):
        highest = np.maximum.reduceat(terms, selection.start)
        shift = np.where(np.isneginf(highest), 0.0, highest)
        scaled = np.exp(terms - np.repeat(shift, selection.sizes))
        with np.errstate(divide="ignore"):
            mean[selection.group] = np.log(np.add.reduceat(scaled, selection.start)) + shift
    return mean


def selection_of(
    hypothesis: NDArray[np.int64], group: NDArray[np.int64], n_group: int
) -> Selection:
    """Select hypotheses by their groups, which ascend: [selected] both."""
    start = np.flatnonzero(np.diff(group, prepend=-1))
    return Selection(hypothesis, start, group[start], n_group)

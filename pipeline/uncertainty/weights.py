"""Means over the first B hypotheses of each sentence: importance-weighted, or of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.uncertainty.kernel import Float64


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

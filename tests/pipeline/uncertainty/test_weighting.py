"""Weights and means over the hypotheses of a sentence, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.uncertainty.weighting import (
    Selection,
    first_hypotheses,
    first_of_member,
    importance,
    log_weighted_mean,
    uniform,
    weighted_mean,
)

# Sentences of 2, 0, 3 and 1 hypotheses.
OFFSET = np.array([0, 2, 2, 5, 6])
PAIR = Selection(np.array([0, 1]), np.array([0]), np.array([0]), 1)


def assert_equal(
    selection: Selection, hypothesis: list[int], start: list[int], group: list[int], n: int
) -> None:
    assert selection.hypothesis.tolist() == hypothesis
    assert selection.start.tolist() == start
    assert selection.group.tolist() == group
    assert selection.n_group == n


def test_first_hypotheses_of_each_sentence_are_selected() -> None:
    assert_equal(first_hypotheses(OFFSET, 1), [0, 2, 5], [0, 1, 2], [0, 2, 3], 4)
    assert_equal(first_hypotheses(OFFSET, 2), [0, 1, 2, 3, 5], [0, 2, 4], [0, 2, 3], 4)
    assert_equal(first_hypotheses(OFFSET, 9), [0, 1, 2, 3, 4, 5], [0, 2, 5], [0, 2, 3], 4)
    assert_equal(first_hypotheses(np.array([0, 0]), 9), [], [], [], 1)


def test_first_hypotheses_of_each_member_are_selected() -> None:
    """Members 1, 0, 1, 1 drew sentence 0; member 0 alone drew sentence 1."""
    offset, member = np.array([0, 4, 5]), np.array([1, 0, 1, 1, 0], dtype=np.int16)
    assert_equal(first_of_member(offset, member, 2, 1), [1, 0, 4], [0, 1, 2], [0, 1, 2], 4)
    assert_equal(first_of_member(offset, member, 2, 2), [1, 0, 2, 4], [0, 1, 3], [0, 1, 2], 4)
    assert_equal(first_of_member(offset, member, 3, 9), [1, 0, 2, 3, 4], [0, 1, 4], [0, 1, 3], 6)


def test_importance_weights_by_hand() -> None:
    """Probabilities 1/2 and 1/8 at T = 1 and T = 2; a sentence of one hypothesis has weight 1."""
    logprob = np.log([0.5, 0.125, 0.25])
    chosen = first_hypotheses(np.array([0, 2, 3]), 2)
    assert np.exp(importance(logprob, chosen, 1)) == pytest.approx([0.8, 0.2, 1])
    assert np.exp(importance(logprob, chosen, 2)) == pytest.approx([2 / 3, 1 / 3, 1])
    second = first_hypotheses(np.array([0, 0, 2, 3]), 1)
    assert np.exp(importance(logprob, second, 1)) == pytest.approx([1, 1])


def test_importance_weights_below_the_smallest_double() -> None:
    weight = np.exp(importance(np.array([-2000.0, -2000 - np.log(3)]), PAIR, 1))
    assert weight == pytest.approx([0.75, 0.25])


def test_impossible_hypotheses_have_no_weight_unless_all_are() -> None:
    assert np.exp(importance(np.array([-np.inf, -3.0]), PAIR, 1)).tolist() == [0, 1]
    both = importance(np.array([-np.inf, -np.inf]), PAIR, 1)
    assert np.exp(both) == pytest.approx([0.5, 0.5])


def test_no_hypothesis_has_no_mean() -> None:
    nothing = first_hypotheses(np.array([0, 0, 0]), 3)
    empty = importance(np.empty(0), nothing, 1)
    assert empty.tolist() == []
    assert np.isnan(weighted_mean(empty, np.empty(0), nothing)).tolist() == [True, True]
    assert np.isnan(log_weighted_mean(empty, np.empty(0), nothing)).tolist() == [True, True]


def test_equal_weights_by_hand() -> None:
    assert np.exp(uniform(first_hypotheses(OFFSET, 9))) == pytest.approx(
        [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1]
    )


def test_means_by_hand() -> None:
    chosen = first_hypotheses(OFFSET, 2)
    log_weight, value = np.log([0.25, 0.75, 0.5, 0.5, 1.0]), np.array([8.0, 4.0, 1.0, 3.0, -7.0])
    mean = weighted_mean(log_weight, value, chosen)
    assert mean[[0, 2, 3]] == pytest.approx([5, 2, -7])
    assert np.isnan(mean[1])
    squares = log_weighted_mean(log_weight, np.log(value**2), chosen)
    assert np.exp(squares[[0, 2, 3]]) == pytest.approx([28, 5, 49])
    assert np.isnan(squares[1])


def test_infinite_values_count_where_they_have_a_weight() -> None:
    certain, value = np.array([0.0, -np.inf]), np.array([3.0, np.inf])
    assert weighted_mean(certain, value, PAIR).tolist() == [3]
    assert weighted_mean(certain, value[::-1], PAIR).tolist() == [np.inf]
    # exp of the log-weight underflows, but the weight is not 0.
    assert weighted_mean(np.array([0.0, -1000.0]), value, PAIR).tolist() == [np.inf]


def test_logarithms_of_means_below_the_smallest_double() -> None:
    half = np.log([0.5, 0.5])
    mean = log_weighted_mean(half, np.array([-2000.0, -2000 + np.log(3)]), PAIR)
    assert mean == pytest.approx([-2000 + np.log(2)], abs=1e-12)
    assert log_weighted_mean(half, np.full(2, -np.inf), PAIR).tolist() == [-np.inf]
    assert log_weighted_mean(half, np.array([-np.inf, np.log(4)]), PAIR) == pytest.approx(np.log(2))

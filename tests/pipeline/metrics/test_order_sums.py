from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.bootstrap import resample_weights
from pipeline.metrics.detection import weighted_average_precision
from pipeline.metrics.ranking import precision_sum, rank_excess, tie_groups
from pipeline.metrics.rules import weighted_trapezoid_area


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 99))
def test_ranks_are_those_of_a_list_in_which_items_stand_as_often_as_they_count(score, seed):
    random = np.random.default_rng(seed)
    marks = random.integers(0, 5, len(score)).astype(float)
    times = random.integers(0, 3, len(score))
    drawn = np.repeat(np.array(score), times)
    groups = tie_groups(np.array(score, dtype=float))
    found = rank_excess(
        times[np.newaxis].astype(float), groups.order, marks[groups.order], groups.is_last
    )
    # The mean rank of a tie group, half a rank down as a sentence covers the rank below its own.
    ranks = np.array([(drawn < one).sum() + (drawn == one).sum() / 2 for one in drawn])
    expected = np.repeat(marks, times) @ (ranks - len(drawn) / 2) if len(drawn) else 0
    assert found == pytest.approx([expected])


def test_equal_marks_have_no_excess_to_the_last_digit():
    weights = resample_weights(7, 50, seed=1).astype(float)
    groups = tie_groups(np.full(7, 0.1))
    found = rank_excess(weights, groups.order, np.full(7, 0.1), groups.is_last)
    np.testing.assert_array_equal(found, 0)


def test_precision_by_hand():
    weights = np.array([[1.0, 1, 1], [0, 2, 1]])
    row, marks = np.array([0, 1, 2]), np.array([1.0, 0, 1])
    gained, total = precision_sum(weights, row, marks, np.array([True, True, True]))
    np.testing.assert_allclose(gained, [1 + 2 / 3, 1 / 3])
    np.testing.assert_allclose(total, [2, 1])


@pytest.mark.parametrize("statistic", [weighted_average_precision, weighted_trapezoid_area])
def test_tokens_count_as_often_as_their_sentence(statistic):
    random = np.random.default_rng(0)
    sentence = np.sort(random.integers(0, 6, 40))
    label, score = random.integers(0, 2, 40), random.integers(0, 9, 40)
    weights = resample_weights(6, 20, seed=0).astype(float)
    np.testing.assert_allclose(
        statistic(label, score, sentence)(weights), statistic(label, score)(weights[:, sentence])
    )

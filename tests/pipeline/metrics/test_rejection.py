from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.metrics.rejection import prediction_rejection_ratio, rejection_curve

ERRORS = st.lists(st.integers(0, 4), min_size=2, max_size=6)


def area_under_curve(error, order):
    """Return the area of trapezoids under the mean error after replacing 0 to N sentences."""
    remaining = list(error)
    curve = [sum(remaining) / len(error)]
    for sentence in order:
        remaining[sentence] = 0
        curve.append(sum(remaining) / len(error))
    return sum((a + b) / 2 for a, b in pairwise(curve)) / len(error)


def brute_force(error, uncertainty):
    """Return the mean area over all orders of decreasing uncertainty."""

    def allowed(order):
        ranked = [uncertainty[i] for i in order]
        return all(a >= b for a, b in pairwise(ranked))

    everything = list(permutations(range(len(error))))
    random = np.mean([area_under_curve(error, order) for order in everything])
    oracle = min(area_under_curve(error, order) for order in everything)
    ours = np.mean([area_under_curve(error, order) for order in everything if allowed(order)])
    return 100 * (random - ours) / (random - oracle)


@given(ERRORS, st.data())
def test_equals_the_mean_over_all_orders_of_ties(error, data):
    uncertainty = data.draw(
        st.lists(st.integers(0, 2), min_size=len(error), max_size=len(error)), label="uncertainty"
    )
    ours = prediction_rejection_ratio(error, uncertainty)
    if len(set(error)) == 1:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(brute_force(error, uncertainty), abs=1e-9)


def test_rejection_ratio_by_hand():
    # If error 2 is replaced second, the curve is 2/3, 2/3, 0, 0; the oracle has 2/3, 0, 0, 0.
    assert prediction_rejection_ratio([2, 0, 0], [2, 3, 1]) == pytest.approx(0)
    assert prediction_rejection_ratio([2, 0, 0], [3, 2, 1]) == pytest.approx(100)
    assert prediction_rejection_ratio([2, 0, 0], [1, 2, 3]) == pytest.approx(-100)
    assert prediction_rejection_ratio([2, 0, 0], [3, 3, 1]) == pytest.approx(50)


@given(ERRORS)
def test_error_as_uncertainty_is_the_oracle_and_a_constant_is_chance(error):
    if len(set(error)) > 1:
        assert prediction_rejection_ratio(error, error) == pytest.approx(100)
        assert prediction_rejection_ratio(error, np.zeros(len(error))) == pytest.approx(0)


@given(ERRORS, st.data())
def test_only_the_order_of_uncertainty_matters(error, data):
    uncertainty = data.draw(
        st.lists(st.integers(-5, 5), min_size=len(error), max_size=len(error)), label="uncertainty"
    )
    np.testing.assert_equal(
        prediction_rejection_ratio(error, uncertainty),
        prediction_rejection_ratio(error, np.exp(uncertainty)),
    )


def test_infinite_uncertainty_ranks_at_the_ends():
    error = [5, 1, 2, 0]
    infinite = prediction_rejection_ratio(error, [np.inf, 1, 2, -np.inf])
    assert infinite == prediction_rejection_ratio(error, [9, 1, 2, 0])
    tied = prediction_rejection_ratio(error, [np.inf, np.inf, 2, 1])
    assert tied == prediction_rejection_ratio(error, [9, 9, 2, 1])


@pytest.mark.parametrize("error", [[], [3], [2, 2, 2], [0, 0]])
def test_undefined_without_unequal_errors(error):
    assert np.isnan(prediction_rejection_ratio(error, np.arange(len(error))))


@pytest.mark.parametrize(
    ("error", "uncertainty", "message"),
    [
        ([1, 2], [1], r"lengths differ \(2 and 1\)"),
        ([1, 2], [1, np.nan], "uncertainty: 1 of 2 values are NaN"),
        ([1, np.inf], [1, 2], "error: holds an infinite value"),
        ([[1, 2]], [1, 2], "error: must be one-dimensional"),
    ],
)
def test_values_without_a_rank_are_rejected(error, uncertainty, message):
    with pytest.raises(DataError, match=message):
        prediction_rejection_ratio(error, uncertainty)


def test_rejection_curve_by_hand() -> None:
    curve = rejection_curve([30.0, 0.0, 60.0], [0.1, 0.3, 0.2])
    np.testing.assert_allclose(curve.replaced, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve.error, [30, 30, 10, 0])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=5))
def test_curve_with_ties_is_the_mean_over_their_orders(pairs: list[tuple[int, int]]) -> None:
    error, uncertainty = (np.array(values, dtype=float) for values in zip(*pairs, strict=True))
    orders = [
        order
        for order in permutations(range(len(pairs)))
        if all(uncertainty[a] >= uncertainty[b] for a, b in pairwise(order))
    ]
    left = [
        [error[list(order[replaced:])].sum() / len(pairs) for replaced in range(len(pairs) + 1)]
        for order in orders
    ]
    fractions = np.arange(len(pairs) + 1) / len(pairs)
    curve = rejection_curve(error, uncertainty)
    np.testing.assert_allclose(curve.at(fractions), np.mean(left, axis=0), atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=2, max_size=30))
def test_areas_of_curves_give_the_rejection_ratio(pairs: list[tuple[int, int]]) -> None:
    error, uncertainty = (np.array(values, dtype=float) for values in zip(*pairs, strict=True))
    expected = prediction_rejection_ratio(error, uncertainty)
    if np.isnan(expected):
        return
    random = error.mean() / 2
    gain = random - rejection_curve(error, uncertainty).area
    most = random - rejection_curve(error, error).area
    assert 100 * gain / most == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("error", "uncertainty"), [([], []), ([1.0], [1.0, 2.0])])
def test_curve_of_unequal_or_no_sentences_is_rejected(
    error: list[float], uncertainty: list[float]
) -> None:
    with pytest.raises(DataError, match=r"no sentence|lengths differ"):
        rejection_curve(error, uncertainty)

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.metrics.rejection import prediction_rejection_ratio, rejection_curve


def test_a_curve_by_hand() -> None:
    curve = rejection_curve([30.0, 0.0, 60.0], [0.1, 0.3, 0.2])
    np.testing.assert_allclose(curve.replaced, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve.error, [30, 30, 10, 0])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2, max_size=5))
def test_ties_are_the_mean_over_their_orders(pairs: list[tuple[int, int]]) -> None:
    error, uncertainty = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
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
def test_its_areas_give_the_rejection_ratio(pairs: list[tuple[int, int]]) -> None:
    error, uncertainty = (np.array(one, dtype=float) for one in zip(*pairs, strict=True))
    expected = prediction_rejection_ratio(error, uncertainty)
    if np.isnan(expected):
        return
    random = error.mean() / 2
    gain = random - rejection_curve(error, uncertainty).area
    most = random - rejection_curve(error, error).area
    assert 100 * gain / most == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("error", "uncertainty"), [([], []), ([1.0], [1.0, 2.0])])
def test_unequal_or_no_sentences_are_refused(error: list[float], uncertainty: list[float]) -> None:
    with pytest.raises(DataError, match=r"no sentence|lengths differ"):
        rejection_curve(error, uncertainty)

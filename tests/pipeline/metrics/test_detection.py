import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from pipeline.errors import DataError
from pipeline.metrics import average_precision, roc_auc

SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=20)


@given(SCORES, SCORES)
def test_roc_auc_equals_scikit_learn(in_domain, out_of_domain):
    label = [0] * len(in_domain) + [1] * len(out_of_domain)
    expected = 100 * roc_auc_score(label, in_domain + out_of_domain)
    assert roc_auc(in_domain, out_of_domain) == pytest.approx(expected)


@given(SCORES, st.data())
def test_average_precision_equals_scikit_learn(uncertainty, data):
    label = data.draw(
        st.lists(st.booleans(), min_size=len(uncertainty), max_size=len(uncertainty)), label="label"
    )
    if any(label):
        expected = 100 * average_precision_score(label, uncertainty)
        assert average_precision(label, uncertainty) == pytest.approx(expected)
    else:
        assert np.isnan(average_precision(label, uncertainty))


def test_detection_by_hand():
    assert roc_auc([0, 1], [2, 3]) == 100
    assert roc_auc([2, 3], [0, 1]) == 0
    assert roc_auc([1, 1], [1]) == 50
    assert average_precision([0, 0, 1, 0], [1, 1, 1, 1]) == 25


@given(SCORES, SCORES)
def test_swapping_the_sets_mirrors_roc_auc(in_domain, out_of_domain):
    assert roc_auc(in_domain, out_of_domain) == pytest.approx(
        100 - roc_auc(out_of_domain, in_domain)
    )


def test_infinite_uncertainty_ranks_at_the_ends():
    assert roc_auc([0, -np.inf, 1], [np.inf]) == 100
    assert roc_auc([0, np.inf], [np.inf]) == 75
    assert average_precision([1, 0], [np.inf, 1e300]) == 100


@pytest.mark.parametrize(("in_domain", "out_of_domain"), [([], [1]), ([1], []), ([], [])])
def test_detection_of_a_single_class_is_undefined(in_domain, out_of_domain):
    assert np.isnan(roc_auc(in_domain, out_of_domain))


def test_nan_and_other_labels_are_rejected():
    with pytest.raises(DataError, match="out_of_domain: 1 of 2 values are NaN"):
        roc_auc([1], [1, np.nan])
    with pytest.raises(DataError, match="label: holds values other than 0 and 1"):
        average_precision([0, 2], [1, 2])
    with pytest.raises(DataError, match=r"lengths differ \(1 and 2\)"):
        average_precision([0], [1, 2])

import numpy as np
import pytest

from pipeline.metrics.performance import sentence_nll


def test_hand_case_of_two_members():
    # One sentence of two tokens; members give 1/2, 1/2 and 1/4, 1.
    logprob = np.log([[0.5, 0.25], [0.5, 1.0]])
    nll = sentence_nll(logprob, np.array([0, 2]))
    assert nll.prex == pytest.approx([-np.log(0.375 * 0.75) / 2])
    assert nll.expr == pytest.approx([-np.log(0.25) / 2])
    assert nll.single[:, 0] == pytest.approx([np.log(2), np.log(2)])


def test_members_that_agree_make_one_number():
    logprob = np.repeat(np.log([[0.2], [0.7], [0.1]]), 3, axis=1)
    nll = sentence_nll(logprob, np.array([0, 1, 3]))
    np.testing.assert_allclose(nll.prex, nll.expr)
    np.testing.assert_allclose(nll.single, np.tile(nll.prex, (3, 1)))


def test_zero_probability_is_infinite_and_never_nan():
    logprob = np.array([[-np.inf, np.log(0.5)], [-np.inf, -np.inf]])
    nll = sentence_nll(logprob, np.array([0, 1, 2]))
    assert nll.prex == pytest.approx([np.log(4), np.inf])
    assert nll.expr == pytest.approx([np.log(4), np.inf])
    assert nll.single[0].tolist() == [np.inf, np.inf]


def test_no_sentence():
    assert sentence_nll(np.empty((0, 2)), np.array([0])).single.shape == (2, 0)

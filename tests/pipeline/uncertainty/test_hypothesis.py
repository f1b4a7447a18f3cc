"""Values of single hypotheses, which sequence measures average, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.uncertainty.hypothesis import HypothesisSums, deviation_of_tokens
from pipeline.uncertainty.measures_of_sequences import SEQUENCE_MEASURES
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES

INF = np.inf
CHAIN = [name for name, measure in TOKEN_MEASURES.items() if measure.chain is not None]
MAXIMUM = [name for name, measure in TOKEN_MEASURES.items() if measure.maximum is not None]
# A hypothesis of two tokens; P(y) is 1/2 under one member and 1/8 under the other.
PROBABILITY = np.array([[0.5, 0.125]])


def sums(
    logprob_member: np.ndarray, prex: float = -1.0, expr: float = -2.0, length: float = 2.0
) -> HypothesisSums:
    n = len(logprob_member)
    chain = {name: np.full(n, 10.0 + len(name)) for name in CHAIN}
    maximum = {name: np.full(n, 20.0 + len(name)) for name in MAXIMUM}
    logprob = {"prex": np.full(n, prex), "expr": np.full(n, expr)}
    deviation = np.full(n, 0.25)
    return HypothesisSums(np.full(n, length), logprob_member, logprob, chain, maximum, deviation)


@pytest.mark.parametrize(
    ("name", "value", "rate"),
    [
        ("prex_entropy_s", 1.0, True),
        ("expr_entropy_s", 2.0, True),
        # The mean over members of ln P is ln 1/4.
        ("prex_rmi_s", -1 + np.log(4), True),
        ("expr_rmi_s", -2 + np.log(4), True),
        ("prex_entropy_c", 10.0 + len("prex_entropy"), True),
        ("expr_epkl_w_c", 10.0 + len("expr_epkl_w"), True),
        ("var_p", 0.1875**2, False),
        ("var_p_ln", (np.sqrt(0.5) - np.sqrt(0.125)) ** 2 / 4, False),
        ("var_logp", np.log(2) ** 2, False),
        ("var_logp_ln", np.log(2) ** 2 / 4, False),
        ("data_c", 10.0 + len("data"), True),
        ("data_max", 20.0 + len("data"), False),
        ("member_score", np.log(4), True),
        # Per token, the mean of ln P is -ln 2 and its variance is (ln 2)^2 / 4.
        ("d_combo", -4 / np.log(2) - 1, False),
        ("score_std", 0.25, False),
        ("hypothesis_length", 2.0, False),
    ],
)
def test_values_of_a_hypothesis_by_hand(name: str, value: float, rate: bool) -> None:
    given = sums(np.log(PROBABILITY))
    assert SEQUENCE_MEASURES[name].values(given, False) == pytest.approx([value])
    assert SEQUENCE_MEASURES[name].values(given, True) == pytest.approx(
        [value / 2 if rate else value]
    )


def test_only_the_forms_of_token_measures_need_distributions() -> None:
    needs_distributions = {
        name for name, measure in SEQUENCE_MEASURES.items() if not measure.members_only
    }
    chain = {f"{name}{form}" for name in CHAIN for form in ("_c", "_cmc")} - {"data_cmc"}
    assert needs_distributions == chain | {f"{name}_max" for name in MAXIMUM}


def test_values_of_impossible_hypotheses() -> None:
    """ln P is -inf under one member or under all members."""
    in_one, in_every = np.array([[-INF, -1.0]]), np.array([[-INF, -INF]])
    for name in ("var_logp", "var_logp_ln"):
        assert SEQUENCE_MEASURES[name].values(sums(in_one), True).tolist() == [INF]
        assert SEQUENCE_MEASURES[name].values(sums(in_every), True).tolist() == [0]
    assert SEQUENCE_MEASURES["d_combo"].values(sums(in_one), True).tolist() == [-1]
    assert SEQUENCE_MEASURES["d_combo"].values(sums(in_every), True).tolist() == [-INF]
    assert SEQUENCE_MEASURES["member_score"].values(sums(in_one), True).tolist() == [INF]
    assert SEQUENCE_MEASURES["prex_rmi_s"].values(sums(in_one), False).tolist() == [INF]
    assert SEQUENCE_MEASURES["prex_rmi_s"].values(sums(in_every, prex=-INF), False).tolist() == [0]
    assert SEQUENCE_MEASURES["prex_entropy_s"].values(
        sums(in_every, prex=-INF), False
    ).tolist() == [INF]


def test_the_deviation_over_tokens_by_hand() -> None:
    """Tokens of P 1/2 and 1/8 deviate by ln 2, one token by nothing, P = 0 infinitely."""
    probability = np.array([[0.5, 0.3], [0.125, 0.3], [0.7, 0.2], [0.5, 0.5], [0.0, 0.5]])
    with np.errstate(divide="ignore"):
        logprob = np.log(probability)
    offset = np.array([0, 2, 3, 5])
    member = np.add.reduceat(logprob, offset[:-1], axis=0)
    deviation = deviation_of_tokens(logprob, member, offset)
    assert deviation == pytest.approx([np.log(2) / 2, 0, INF])


def test_a_certain_hypothesis_has_the_entropy_zero_and_not_minus_zero() -> None:
    value = SEQUENCE_MEASURES["prex_entropy_s"].values(sums(np.zeros((1, 2)), prex=0.0), False)
    assert not np.signbit(value).any()


def test_the_logarithm_of_a_variance_does_not_underflow() -> None:
    given = np.array([np.log([0.5, 0.125]), np.log([0.5, 0.125]) - 3000, [-INF, -INF], [-9.0, -9]])
    expected = 2 * np.log(0.1875) + np.array([0, -6000, -INF, -INF])
    np.testing.assert_allclose(sums(given).log_variance(), expected)

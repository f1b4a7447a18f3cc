"""Token measures by hand, their properties, and extreme numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.statistics.kernel import fused_statistics
from pipeline.uncertainty.token import token_measures

Float64 = NDArray[np.float64]
KNOWLEDGE = [
    f"{posterior}_{name}" for posterior in ("prex", "expr") for name in ("mi", "epkl", "rmi", "pmi")
] + ["expr_mi_w", "expr_epkl_w", "expr_mi_kl"]
NOT_NEGATIVE = ["prex_mi", "prex_epkl", "prex_rmi", "expr_mi_w", "expr_epkl_w", "expr_rmi"]


def log_softmax(logit: Float64) -> Float64:
    shifted = logit - logit.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@st.composite
def ensembles(draw: Any) -> tuple[Float64, NDArray[np.int64]]:
    seed = draw(st.integers(0, 2**32 - 1))
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(2, 6)))
    scale = draw(st.sampled_from([0.1, 1.0, 10.0]))
    random = np.random.default_rng(seed)
    logprob = log_softmax(scale * random.normal(size=shape))
    return logprob, random.integers(0, shape[2], shape[0])


def by_definition(logprob: Float64, token: NDArray[np.int64]) -> dict[str, Float64]:
    """Return the measures by the definitions of the paper, divergence by divergence."""
    n_token, n_member, _ = logprob.shape
    names = [*KNOWLEDGE, "prex_entropy", "expr_entropy", "prex_score", "expr_score", "data"]
    result = {name: np.zeros(n_token) for name in names}
    prefix = np.zeros(n_member)

    def kl(p: Float64, q: Float64) -> float:
        return float(np.sum(p * np.log(p / q)))

    def entropy(p: Float64) -> float:
        return float(-np.sum(p * np.log(p)))

    for position in range(n_token):
        member = np.exp(logprob[position])
        weight = np.exp(prefix) / np.exp(prefix).sum()
        data = float(np.mean([entropy(p) for p in member]))
        result["data"][position] = data
        for name, post in (("prex", member.mean(axis=0)), ("expr", weight @ member)):
            rmi = np.mean([kl(post, p) for p in member])
            result[f"{name}_entropy"][position] = entropy(post)
            result[f"{name}_score"][position] = -np.log(post[token[position]])
            result[f"{name}_rmi"][position] = rmi
            result[f"{name}_mi"][position] = entropy(post) - data
            result[f"{name}_epkl"][position] = rmi + entropy(post) - data
            pmi = -np.mean(np.log(member[:, token[position]] / post[token[position]]))
            result[f"{name}_pmi"][position] = pmi
        expr = weight @ member
        result["expr_mi_kl"][position] = np.mean([kl(p, expr) for p in member])
        result["expr_mi_w"][position] = np.sum(
            [w * kl(p, expr) for w, p in zip(weight, member, strict=True)]
        )
        result["expr_epkl_w"][position] = np.sum(
            [weight[m] * np.mean([kl(member[m], p) for p in member]) for m in range(n_member)]
        )
        prefix += logprob[position, :, token[position]]
    return {name: np.asarray(values) for name, values in result.items()}


@settings(max_examples=60, deadline=None)
@given(ensembles())
def test_measures_equal_their_definitions(case: tuple[Float64, NDArray[np.int64]]):
    values, expected = token_measures(*case), by_definition(*case)
    assert set(values) == set(expected), "Define each new token measure in by_definition."
    for name, wanted in expected.items():
        np.testing.assert_allclose(values[name], wanted, rtol=1e-9, atol=1e-9, err_msg=name)


@settings(max_examples=60, deadline=None)
@given(ensembles())
def test_measures_have_their_signs_and_identities(case: tuple[Float64, NDArray[np.int64]]):
    values = token_measures(*case)
    for name in NOT_NEGATIVE:
        assert values[name].min() >= -1e-12, name
    for name in ("prex_{}", "expr_{}"):
        total = values[name.format("mi")] + values[name.format("rmi")]
        np.testing.assert_allclose(values[name.format("epkl")], total, atol=1e-12)
    np.testing.assert_allclose(
        values["expr_epkl_w"], values["expr_mi_w"] + values["expr_rmi"], atol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(ensembles(), st.randoms(use_true_random=False))
def test_order_of_members_and_impossible_tokens_change_nothing(
    case: tuple[Float64, NDArray[np.int64]], random: Any
):
    logprob, token = case
    order = list(range(logprob.shape[1]))
    random.shuffle(order)
    padding = np.full((*logprob.shape[:2], 3), -np.inf)
    padded = np.concatenate([logprob, padding], axis=2)[:, order]
    expected, values = token_measures(logprob, token), token_measures(padded, token)
    for name, wanted in expected.items():
        np.testing.assert_allclose(values[name], wanted, atol=1e-10, err_msg=name)


def test_members_that_agree_have_no_knowledge_uncertainty():
    logprob = np.repeat(log_softmax(np.random.default_rng(0).normal(size=(5, 1, 9))), 4, axis=1)
    values = token_measures(logprob, np.arange(5))
    for name in KNOWLEDGE:
        np.testing.assert_allclose(values[name], 0, atol=1e-12, err_msg=name)


def test_two_certain_members_that_disagree_have_ln_2():
    with np.errstate(divide="ignore"):
        logprob = np.log(np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    values = token_measures(logprob, np.array([0]))
    ln2 = pytest.approx(np.log(2))
    assert values["data"][0] == 0
    for name in ("prex_entropy", "expr_entropy", "prex_mi", "expr_mi", "expr_mi_w", "expr_mi_kl"):
        assert values[name][0] == ln2
    assert values["prex_score"][0] == ln2
    for name in ("prex_epkl", "prex_rmi", "expr_rmi", "prex_pmi"):
        assert values[name][0] == np.inf


def test_one_member_has_no_knowledge_uncertainty():
    logprob = log_softmax(np.random.default_rng(0).normal(size=(6, 1, 300))).astype(np.float32)
    values = token_measures(logprob, np.arange(6))
    for name in KNOWLEDGE:
        assert np.all(values[name] == 0), name


def test_members_that_exclude_the_prefix_have_no_weight():
    """Token 0 is impossible for member 1, so after it ExPr equals member 0."""
    with np.errstate(divide="ignore"):
        first = np.log(np.array([[0.5, 0.5], [0.0, 1.0]]))
        second = np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))
    values = token_measures(np.stack([first, second]), np.array([0, 1]))
    entropy = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert values["expr_entropy"][1] == pytest.approx(entropy)
    assert values["expr_mi_w"][1] == pytest.approx(0)
    assert values["expr_score"][1] == pytest.approx(-np.log(0.1))
    assert not any(np.isnan(measure).any() for measure in values.values())


def test_case_1_token_that_no_member_allows_gives_no_nan():
    with np.errstate(divide="ignore"):
        logprob = np.log(np.array([[[0.5, 0.5, 0.0], [0.3, 0.7, 0.0]]] * 3))
    values = token_measures(logprob, np.array([2, 0, 2]))
    assert values["prex_score"].tolist()[::2] == [np.inf, np.inf]
    assert values["prex_pmi"][0] == values["expr_pmi"][0] == 0
    for name in (*KNOWLEDGE, "prex_entropy", "expr_entropy", "data"):
        assert np.isfinite(values[name]).all(), name
    assert not any(np.isnan(measure).any() for measure in values.values())


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_case_1_low_precision_and_extremes_give_no_nan(dtype: type[np.floating[Any]]):
    """Numbers at the limits of fp16, underflow of exp, and -inf in one member or in all."""
    random = np.random.default_rng(3)
    exact = log_softmax(3 * random.normal(size=(6, 3, 50)))
    exact[0, 0, 0] = -65504.0
    exact[1, :, 1] = -np.inf
    exact[2, 0, 2:] = -np.inf
    exact[3, :, :] = np.where(np.arange(50) == 7, 0.0, -120.0)
    exact = log_softmax(exact)
    token = np.array([3, 3, 1, 7, 0, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = token_measures(exact.astype(dtype), token)
    reference = token_measures(exact.astype(dtype).astype(np.float64), token)
    for name, wanted in reference.items():
        assert not np.isnan(values[name]).any(), name
        np.testing.assert_allclose(values[name], wanted, rtol=1e-5, atol=1e-5, err_msg=name)
    assert np.isinf(values["prex_rmi"]).tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("shape", [(1, 2, 2), (3, 10, 40_000), (700, 4, 300)])
def test_float32_pass_equals_float64(shape: tuple[int, int, int]):
    random = np.random.default_rng(4)
    logprob = log_softmax(2 * random.normal(size=shape))
    prefix = -30 * random.random(shape[:2])
    fast = fused_statistics(logprob.astype(np.float32), prefix)
    exact = fused_statistics(logprob, prefix)
    for name, wanted in exact.items():
        np.testing.assert_allclose(fast[name], wanted, atol=1e-5, err_msg=name)


@settings(max_examples=60, deadline=None)
@given(ensembles(), st.floats(0, 1))
def test_float32_pass_equals_float64_with_impossible_tokens(
    case: tuple[Float64, NDArray[np.int64]], share: float
):
    """The compiled pass and float64 agree on tokens that one member or all members exclude."""
    logprob = case[0].astype(np.float32)
    random = np.random.default_rng(logprob.size)
    logprob[random.random(logprob.shape) < share] = -np.inf
    prefix = np.where(random.random(logprob.shape[:2]) < share, -np.inf, -1.0)
    fast, exact = (
        fused_statistics(logprob.astype(dtype), prefix) for dtype in (np.float32, np.float64)
    )
    for name, wanted in exact.items():
        assert not np.isnan(fast[name]).any(), name
        np.testing.assert_allclose(fast[name], wanted, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("logprob", "token", "message"),
    [
        (np.zeros((2, 3)), [0, 0], r"must be \[token, member, vocab\]"),
        (np.zeros((1, 1, 3, 2)), [0], r"must be \[token, member, vocab\]"),
        (np.zeros((2, 1, 3)), [0], r"and whole numbers \[token\]"),
        (np.zeros((1, 1, 3)), [1.0], "whole numbers"),
        (np.zeros((1, 1, 3)), [3], r"must lie in \[0, 3\) \(got 3"),
        (np.zeros((1, 1, 3)), [-1], r"must lie in \[0, 3\) \(got -1"),
        (np.array([[[0.0, -np.inf]], [[np.nan, 0.0]]]), [0, 1], "NaN at token 1"),
        (np.array([[[0.0, 0.0]], [[0.0, np.nan]]], np.float32), [0, 0], "NaN at token 1"),
    ],
)
def test_bad_arrays_are_refused(logprob: Float64, token: list[float], message: str):
    with pytest.raises(DataError, match=message):
        token_measures(logprob, np.array(token))


def test_hypothesis_without_tokens_has_empty_measures():
    values = token_measures(np.zeros((0, 2, 3)), np.array([], int))
    assert {measure.shape for measure in values.values()} == {(0,)}


def test_ten_thousand_tokens_give_finite_measures():
    """Prefix log-probs of thousands of nats give one member all the weight."""
    random = np.random.default_rng(6)
    logprob = log_softmax(4 * random.normal(size=(10_000, 2, 3))).astype(np.float32)
    values = token_measures(logprob, random.integers(0, 3, 10_000))
    for name in ("expr_entropy", "expr_mi_w", "expr_rmi", "expr_mi_kl"):
        assert np.isfinite(values[name]).all(), name
    assert values["expr_mi_w"].min() > -1e-6

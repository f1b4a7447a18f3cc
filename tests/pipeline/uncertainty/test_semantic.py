"""Measures from labels of meaning and embeddings, by hand, by brute force and their limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import DataError
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.semantic import (
    embedding_dispersion,
    embedding_distance,
    semantic_entropy,
)

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
SIZE = {"n_member": 3, "vocab_size": 8}


def sentences(make: Make, counts: list[int]) -> list[list[Hypothesis]]:
    return [
        [make(10 * index + rank, 1 + rank % 3) for rank in range(count)]
        for index, count in enumerate(counts)
    ]


def test_entropy_of_meanings_by_hand(store_of: StoreOf, random_hypothesis: Make) -> None:
    """Samples 1, 1, 2 have meanings of 2/3 and 1/3. Numbers are compared within a sentence."""
    drawn = store_of(sentences(random_hypothesis, [3, 0, 2]), regime="sample", **SIZE)
    entropy = semantic_entropy(drawn, [1, 1, 2, 1, 1])
    assert entropy[0] == pytest.approx(np.log(3) - 2 / 3 * np.log(2))
    assert np.isnan(entropy[1])
    assert entropy[2] == 0
    assert not np.signbit(entropy[2])


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    labels=st.lists(st.integers(-1, 2), min_size=1, max_size=5),
    name=st.sampled_from(["prex", "expr"]),
)
def test_entropy_of_meanings_by_brute_force(
    store_of: StoreOf, random_hypothesis: Make, labels: list[int], name: str
) -> None:
    """The shares are the importance weights at T = 1; merging meanings never adds entropy."""
    hypotheses = sentences(random_hypothesis, [len(labels)])
    store = store_of(hypotheses, combination=name, **SIZE)
    joint = [np.exp(item.statistics.logprob.astype(np.float64)) for item in hypotheses[0]]
    if name == "prex":
        probability = np.array([p.mean(axis=1).prod() for p in joint])
    else:
        probability = np.array([p.prod(axis=0).mean() for p in joint])
    probability /= probability.sum()
    of_meaning = [
        sum(p for p, own in zip(probability, labels, strict=True) if own == label)
        for label in set(labels)
    ]
    (entropy,) = semantic_entropy(store, labels)
    assert entropy == pytest.approx(-sum(p * np.log(p) for p in of_meaning), abs=1e-6)
    (apart,) = semantic_entropy(store, np.arange(len(labels)))
    assert entropy <= apart + 1e-9


def test_impossible_hypotheses_add_nothing(store_of: StoreOf, random_hypothesis: Make) -> None:
    one, never = random_hypothesis(1, 2), random_hypothesis(2, 2)
    logprob = np.full_like(never.statistics.logprob, -np.inf)
    never = replace(never, statistics=replace(never.statistics, logprob=logprob))
    assert semantic_entropy(store_of([[one, never]], **SIZE), [1, 2]).tolist() == [0]


def test_dispersion_is_the_mean_over_pairs(store_of: StoreOf, random_hypothesis: Make) -> None:
    store = store_of(sentences(random_hypothesis, [3, 0, 1, 2]), **SIZE)
    vectors = np.array([[1, 0], [0, 2], [-3, 0], [1, 1], [1, 1], [2, 2.0]])
    values = embedding_dispersion(store, vectors)
    # Cosines of the first sentence: 0, 0 and -1.
    assert values[[0, 2, 3]] == pytest.approx([1 + 1 / 3, 0, 0], abs=1e-12)
    assert np.isnan(values[1])
    random = np.random.default_rng(0).normal(size=(6, 4))
    unit = random / np.linalg.norm(random, axis=1, keepdims=True)
    pairs = [1 - unit[a] @ unit[b] for a, b in permutations(range(3), 2)]
    assert embedding_dispersion(store, random)[0] == pytest.approx(np.mean(pairs))
    assert embedding_dispersion(store, 7 * random) == pytest.approx(
        embedding_dispersion(store, random), nan_ok=True
    )


def test_distance_is_that_of_mahalanobis() -> None:
    """Variances 4/3 * 1 and 4/3 * 4 without covariance; the third dimension never varies."""
    known = np.array([[1, 2, 5], [1, -2, 5], [-1, 2, 5], [-1, -2, 5.0]])
    given_vectors = np.array([[0, 0, 5], [2, 0, 5], [0, 4, 9], [np.nan] * 3])
    distance = embedding_distance(given_vectors, known)
    assert distance[:3] == pytest.approx([0, np.sqrt(3), np.sqrt(3)])
    assert np.isnan(distance[3])
    # An invertible linear map of all embeddings changes no distance.
    mixed = np.array([[2.0, 1, 0], [0, 1, 0], [1, 0, 3]])
    mapped = embedding_distance(given_vectors[:2] @ mixed, known @ mixed)
    assert mapped == pytest.approx(distance[:2], abs=1e-9)


def test_wrong_arrays_are_refused(store_of: StoreOf, random_hypothesis: Make) -> None:
    store = store_of(sentences(random_hypothesis, [2]), **SIZE)
    with pytest.raises(DataError, match=r"meaning: must be whole numbers.* 2 in all \(got float64"):
        semantic_entropy(store, [0.5, 1.0])
    with pytest.raises(DataError, match=r"meaning: .* shape \(3,\)"):
        semantic_entropy(store, [1, 2, 3])
    with pytest.raises(DataError, match="embedding: must be one vector per hypothesis, 2 x"):
        embedding_dispersion(store, np.ones((3, 2)))
    with pytest.raises(DataError, match="embedding: row 1 is 0"):
        embedding_dispersion(store, np.array([[1.0, 0], [0, 0]]))
    with pytest.raises(DataError, match="embedding: row 0 is not finite"):
        embedding_dispersion(store, np.array([[np.nan, 0], [0, 1]]))
    with pytest.raises(DataError, match=r"embedding: .* per sentence, 1 x 3 \(got shape \(1, 2\)"):
        embedding_distance(np.ones((1, 2)), np.ones((4, 3)))
    with pytest.raises(DataError, match="in_domain: must have two texts"):
        embedding_distance(np.ones((1, 2)), np.ones((1, 2)))
    searched = [replace(item, member=0) for item in sentences(random_hypothesis, [2])[0]]
    members = store_of([searched], combination="member", **SIZE)
    with pytest.raises(DataError, match="no posterior decoded"):
        semantic_entropy(members, [1, 2])

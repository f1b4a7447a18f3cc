"""Measures of later work: identities with those of the paper, and similarity of hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.quality.translation import corpus_chrf
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.lexical import hypothesis_measures
from pipeline.uncertainty.sequence import sequence_measures

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
LATER = ["data_c", "data_max", "member_score", "d_combo", "score_std", "hypothesis_length"]


def measured(store: Store, length_norm: bool = True) -> dict[str, float]:
    table = sequence_measures(store, beam=3, temperature=2, length_norm=length_norm)
    return {str(name): float(value) for name, value in table.iloc[0].items()}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    n_member=st.integers(2, 4),
    length_norm=st.booleans(),
)
def test_identities(
    store_of: StoreOf,
    random_hypothesis: Make,
    lengths: list[int],
    n_member: int,
    length_norm: bool,
) -> None:
    size = {"n_member": n_member, "vocab_size": 8}
    hypotheses = [random_hypothesis(seed, n, **size) for seed, n in enumerate(lengths)]
    row = measured(store_of([hypotheses], **size), length_norm)
    for posterior in ("prex", "expr"):
        score, rmi = row[f"{posterior}_entropy_s"], row[f"{posterior}_rmi_s"]
        assert row["member_score"] == pytest.approx(score + rmi, abs=1e-6)
    assert row["data_c"] == pytest.approx(row["prex_entropy_c"] - row["prex_mi_c"], abs=1e-6)
    assert row["score_std"] >= 0
    assert row["d_combo"] <= -1
    if length_norm:
        assert row["data_c"] <= row["data_max"] + 1e-9 <= np.log(8) + 1e-6
    if max(lengths[:3]) == 1:
        assert row["score_std"] == 0
    order = np.random.default_rng(0).permutation(n_member)
    permuted = [
        replace(
            hypothesis,
            statistics=replace(
                hypothesis.statistics,
                logprob=hypothesis.statistics.logprob[:, order],
                entropy_member=hypothesis.statistics.entropy_member[:, order],
            ),
        )
        for hypothesis in hypotheses
    ]
    other = measured(store_of([permuted], **size), length_norm)
    assert [other[name] for name in LATER] == pytest.approx([row[name] for name in LATER])


def test_with_one_member_they_are_the_measures_of_a_single_model(
    store_of: StoreOf, random_hypothesis: Make
) -> None:
    hypotheses = [random_hypothesis(seed, 3 + seed, n_member=1) for seed in range(3)]
    row = measured(store_of([hypotheses], n_member=1, vocab_size=8))
    assert row["member_score"] == pytest.approx(row["prex_entropy_s"])
    assert row["data_c"] == pytest.approx(row["prex_entropy_c"])


def test_hypotheses_are_compared_by_chrf(store_of: StoreOf, random_hypothesis: Make) -> None:
    texts = [["the cat", "a cat", "cats"], [], ["alone"], ["", "x"]]
    hypothesis = random_hypothesis(0)
    sentences = [[replace(hypothesis, text=text) for text in of] for of in texts]
    values = hypothesis_measures(store_of(sentences, n_member=3, vocab_size=8))
    pairs = [100 - corpus_chrf([a], [b]) for a, b in permutations(texts[0], 2)]
    expected = [np.mean(pairs), np.nan, 0, 100]
    assert values["hypothesis_chrf"] == pytest.approx(expected, nan_ok=True)

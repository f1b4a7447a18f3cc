"""Measures are means over samples, by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.store import Hypothesis, Store, TokenStatistics
from pipeline.uncertainty.sequence import sequence_measures

StoreOf = Callable[..., Store]
LN2 = np.log(2)
SIZE = {"n_member": 2, "vocab_size": 8}


def drawn(member: int, *probabilities: tuple[float, float]) -> Hypothesis:
    """Return a sample of a member (-1: of the posterior) with the probabilities of its tokens."""
    n_token = len(probabilities)
    plain = {name: np.ones(n_token) for name in TokenStatistics.__dataclass_fields__}
    everything = plain | {
        "logprob": np.log(np.array(probabilities)),
        "entropy_member": np.ones((n_token, 2)),
    }
    statistics = TokenStatistics(**everything)
    return Hypothesis(np.zeros(n_token, int), "text", 0.0, True, statistics, member=member)


def measured(store: Store, beam: int, length_norm: bool) -> Any:
    return sequence_measures(store, beam, 1, length_norm).iloc[0]


@pytest.mark.parametrize(
    ("beam", "length_norm", "first", "second"),
    [
        # Member 0 drew two samples, of which the second adds nothing. Member 1 drew one.
        (9, False, 0.5, 1.0),
        (9, True, 0.25, 1.0),
        (1, False, 1.0, 1.0),
        (1, True, 0.5, 1.0),
    ],
)
def test_members_have_equal_weights_whatever_they_drew(
    store_of: StoreOf, beam: int, length_norm: bool, first: float, second: float
) -> None:
    sentence = [
        drawn(0, (0.5, 0.25), (1.0, 1.0)),
        drawn(1, (0.1, 0.4)),
        drawn(0, (0.2, 0.2)),
    ]
    store = store_of([sentence], regime="sample", combination="member", **SIZE)
    row = measured(store, beam, length_norm)
    assert row["epkl_mc"] == pytest.approx((first * LN2 / 2 + second * LN2) / 2)
    mi = (first * np.log(0.5 / 0.375) + second * np.log(0.4 / 0.25)) / 2
    assert row["prex_mi_mc"] == pytest.approx(mi)
    assert row["expr_mi_mc"] == pytest.approx(mi)


@pytest.mark.parametrize(("beam", "length_norm"), [(2, False), (2, True), (1, True)])
def test_samples_of_a_posterior_have_equal_weights(
    store_of: StoreOf, beam: int, length_norm: bool
) -> None:
    sentence = [drawn(-1, (0.5, 0.5), (0.5, 0.5)), drawn(-1, (0.125, 0.125)), drawn(-1, (1.0, 1.0))]
    store = store_of([sentence, []], regime="sample", **SIZE)
    table = sequence_measures(store, beam, 1, length_norm)
    each = np.array([1 if length_norm else 2, 3]) * LN2
    assert table["prex_entropy_smc"][0] == pytest.approx(each[:beam].mean())
    assert table["prex_rmi_smc"][0] == pytest.approx(0, abs=1e-6)
    assert table["prex_entropy_smc"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("attributes", "refused"),
    [
        ({}, ""),
        ({"sampling_top_k": 8, "sampling_top_p": 1.0}, ""),
        ({"sampling_top_k": 9, "sampling_top_p": 0.0}, ""),
        ({"sampling_top_k": 7}, "sampling_top_k=7"),
        ({"sampling_top_k": 1}, "sampling_top_k=1"),
        ({"sampling_top_p": 0.99}, "sampling_top_p=0.99"),
        ({"sampling_temperature": 1.01}, "sampling_temperature=1.01"),
        ({"sampling_temperature": 0.99}, "sampling_temperature=0.99"),
    ],
)
def test_samples_must_come_from_the_complete_distribution(
    store_of: StoreOf, attributes: dict[str, Any], refused: str
) -> None:
    store = store_of([[drawn(-1, (0.5, 0.5))]], regime="sample", **SIZE, **attributes)
    if not refused:
        assert "prex_entropy_smc" in measured(store, 1, True)
        return
    with pytest.raises(StoreError, match=rf"not {re.escape(refused)}\.$"):
        sequence_measures(store, 1, 1, True, measures=["prex_entropy_smc"])


def test_a_subset_of_members_needs_no_distribution_for_its_joint_probability(
    store_of: StoreOf,
) -> None:
    sentence = [drawn(-1, (0.5, 0.25), (0.5, 1.0))]
    store = store_of([sentence], regime="sample", **SIZE)
    row = sequence_measures(store, 1, 1, False, members=[1]).iloc[0]
    assert row["prex_entropy_smc"] == pytest.approx(2 * LN2)
    assert "prex_entropy_cmc" not in row

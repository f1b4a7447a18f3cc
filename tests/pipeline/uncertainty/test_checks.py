"""Checks of the numbers of a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.store import Hypothesis, Store, TokenStatistics
from pipeline.uncertainty.blocks import HypothesisSummation, token_blocks
from pipeline.uncertainty.checks import StoreChecks, inconsistencies

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
N_MEMBER = 2
SIZE = {"n_member": N_MEMBER, "vocab_size": 8}


def hypothesis(token_logprob: list[float], score: float = 0.0, **changed: Any) -> Hypothesis:
    """Return a hypothesis on whose tokens the members agree; prex_mi is 0.5 nats at each token."""
    n_token = len(token_logprob)
    statistics = TokenStatistics(
        logprob=np.repeat(np.array(token_logprob)[:, np.newaxis], N_MEMBER, axis=1),
        entropy_member=np.ones((n_token, N_MEMBER)),
        **{
            name: np.full(n_token, value)
            for name, value in {
                "entropy_prex": 1.5,
                "entropy_expr": 1.5,
                "cross_prex": 2.0,
                "cross_expr": 2.0,
                "cross_member_expr": 2.0,
            }.items()
        },
    )
    statistics = replace(statistics, **{name: np.array(values) for name, values in changed.items()})
    return Hypothesis(np.zeros(n_token, int), "text", score, True, statistics)


def report(store: Store) -> dict[str, Any]:
    builder, checks = HypothesisSummation(store), StoreChecks(store)
    for block in token_blocks(store):
        builder.add(block)
        checks.add(block)
    return checks.report(builder.sums())


@pytest.mark.parametrize(
    ("token_logprob", "length_penalty", "score", "relative"),
    [
        ([-2.5] * 4, 0.0, -10.0005, 5e-5),
        ([-2.5] * 4, 0.0, -10.002, 2e-4),
        ([-2.5] * 4, 0.0, -9.9995, 5e-5),
        ([-2.5] * 4, 1.0, -2.5, 0.0),
        ([-2.5] * 4, 0.5, -5.001, 2e-4),
        # Below 1 nat the absolute difference counts.
        ([-0.25] * 2, 0.0, -0.50005, 5e-5),
        ([-0.25] * 2, 0.0, -0.5002, 2e-4),
    ],
)
def test_scores_are_compared_with_the_logprobs_of_their_tokens(
    store_of: StoreOf,
    token_logprob: list[float],
    length_penalty: float,
    score: float,
    relative: float,
) -> None:
    store = store_of([[hypothesis(token_logprob, score)]], length_penalty=length_penalty, **SIZE)
    checks = report(store)
    assert checks["score"]["largest_relative_difference"] == pytest.approx(relative, abs=2e-6)
    off = relative > 1e-4
    assert checks["score"]["hypotheses_off"] == off
    assert checks["score"]["ok"] == checks["ok"] == (not off)


def test_an_impossible_hypothesis_has_a_score_of_minus_infinity(store_of: StoreOf) -> None:
    fine, never = hypothesis([-1.0], -1.0), hypothesis([-np.inf], -np.inf)
    wrong = [replace(never, score=-1.0), replace(fine, score=-np.inf)]
    for sentence, off in (([fine, never], 0), ([fine, never, *wrong], 2)):
        score = report(store_of([sentence], length_penalty=0.0, **SIZE))["score"]
        assert score == {
            "largest_relative_difference": 0.0,
            "hypotheses_off": off,
            "ok": off == 0,
        }


@pytest.mark.parametrize(
    "attributes", [{}, {"length_penalty": 1.0, "combination": "member", "regime": "sample"}]
)
def test_scores_are_not_checked_without_length_penalty_or_posterior(
    store_of: StoreOf, attributes: dict[str, Any]
) -> None:
    sample = replace(hypothesis([-1.0], -9.0), member=0)
    checks = report(store_of([[sample]], **SIZE, **attributes))
    assert "no length penalty or no posterior" in checks["score"]["reason"]
    assert checks["ok"]


def test_sentences_hypotheses_and_tokens_are_counted(store_of: StoreOf) -> None:
    cut = replace(hypothesis([-1.0] * 3), finished=False)
    checks = report(store_of([[hypothesis([-1.0] * 2), cut], [], [cut], []], **SIZE))
    names = ("sentences", "sentences_without_hypothesis", "hypotheses", "unfinished_hypotheses")
    assert [checks[name] for name in (*names, "tokens")] == [4, 2, 3, 2, 8]
    assert checks["recomputed"] == {"reason": "the store keeps no distributions"}


@pytest.mark.parametrize("block_bytes", [1, 2**25])
def test_negative_and_infinite_tokens_of_all_blocks_are_counted(
    store_of: StoreOf, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """A difference of two rounded entropies may be below 0 by 1e-4; more is an error."""
    monkeypatch.setattr("pipeline.uncertainty.blocks._BLOCK_BYTES", block_bytes)
    first = hypothesis([-1.0] * 3, entropy_prex=[0.75, 0.99995, 1.5], cross_prex=[1.5, 1.5, np.inf])
    second = hypothesis([-1.0] * 2, entropy_prex=[0.875, 1.5], cross_prex=[np.inf, 2.0])
    checks = report(store_of([[first], [second]], **SIZE))
    assert checks["not_negative"]["prex_mi"] == {"lowest_nats": -0.25, "negative_tokens": 2}
    assert checks["not_negative"]["prex_rmi"] == {"lowest_nats": 0.5, "negative_tokens": 0}
    assert checks["not_negative"]["expr_mi_w"] == {"lowest_nats": 0.5, "negative_tokens": 0}
    assert checks["infinite_tokens"] == {"prex_rmi": 2, "prex_epkl": 2}
    assert not checks["ok"]


def test_a_measure_that_is_infinite_everywhere_has_no_lowest_value(store_of: StoreOf) -> None:
    checks = report(store_of([[hypothesis([-1.0], cross_prex=[np.inf])]], **SIZE))
    assert checks["not_negative"]["prex_rmi"] == {"lowest_nats": None, "negative_tokens": 0}
    assert checks["ok"]


def test_measures_that_may_be_negative_are_reported_separately(store_of: StoreOf) -> None:
    low = hypothesis([-1.0], entropy_member=[[0.0, 2.0]], entropy_expr=[0.5], cross_expr=[0.75])
    # After this prefix member 0 has all the weight.
    before = hypothesis([-1.0])
    statistics = {
        name: np.concatenate([getattr(before.statistics, name), getattr(low.statistics, name)])
        for name in TokenStatistics.__dataclass_fields__
    }
    statistics["logprob"] = np.array([[0.0, -100.0], [-1.0, -1.0]])
    negative = replace(low, token_id=np.zeros(2, int), statistics=TokenStatistics(**statistics))
    checks = report(store_of([[negative]], **SIZE))
    assert checks["may_be_negative"] == {
        "expr_mi": {"lowest_nats": -0.5, "negative_tokens": 1},
        "expr_epkl": {"lowest_nats": -0.25, "negative_tokens": 1},
    }
    assert checks["not_negative"]["expr_mi_w"]["negative_tokens"] == 0
    assert checks["ok"]


@pytest.mark.parametrize("block_bytes", [1, 2**25])
def test_statistics_that_differ_from_their_distributions_are_counted(
    store_of: StoreOf,
    random_hypothesis: Make,
    monkeypatch: pytest.MonkeyPatch,
    block_bytes: int,
) -> None:
    """Two tokens are wrong by half a nat, a third one by half the tolerance."""
    monkeypatch.setattr("pipeline.uncertainty.blocks._BLOCK_BYTES", block_bytes)
    hypotheses = [random_hypothesis(seed, full="float32") for seed in range(3)]
    for index, position, shift in ((0, 1, 0.5), (1, 3, 0.4), (1, 0, 5e-5)):
        statistics = hypotheses[index].statistics
        cross = statistics.cross_expr.copy()
        cross[position] += shift * max(1.0, cross[position])
        shifted = replace(statistics, cross_expr=cross)
        hypotheses[index] = replace(hypotheses[index], statistics=shifted)
    checks = report(store_of([hypotheses[:2], hypotheses[2:]], n_member=3, vocab_size=8))
    assert checks["recomputed"]["from"] == "full"
    assert checks["recomputed"]["tokens_off"] == 2
    largest = checks["recomputed"]["largest_difference_nats"]
    assert largest["cross_expr"] == pytest.approx(0.5, rel=1e-4)
    assert largest["entropy_prex"] < 1e-5
    assert not checks["ok"]


def test_an_infinite_difference_is_reported_as_none(
    store_of: StoreOf, random_hypothesis: Make
) -> None:
    base = random_hypothesis(0, full="float32")
    cross = base.statistics.cross_prex.copy()
    cross[2] = np.inf
    infinite = replace(base, statistics=replace(base.statistics, cross_prex=cross))
    checks = report(store_of([[infinite]], n_member=3, vocab_size=8))
    assert checks["recomputed"]["largest_difference_nats"]["cross_prex"] is None
    assert checks["recomputed"]["tokens_off"] == 1


def test_identical_members_are_named(store_of: StoreOf, random_hypothesis: Make) -> None:
    """The first and last member are identical; the second has only the same log-probs."""
    sentences = []
    for seed in range(2):
        base = random_hypothesis(seed)
        logprob = np.repeat(base.statistics.logprob[:, :1], 3, axis=1)
        entropy = base.statistics.entropy_member.copy()
        entropy[:, 2] = entropy[:, 0]
        statistics = replace(base.statistics, logprob=logprob, entropy_member=entropy)
        sentences.append([replace(base, statistics=statistics)])
    checks = report(store_of(sentences, n_member=3, vocab_size=8))
    assert checks["identical_members"] == [["member_0", "member_2"]]
    differ = [[random_hypothesis(7)], sentences[0]]
    assert report(store_of(differ, n_member=3, vocab_size=8))["identical_members"] == []
    assert report(store_of([[]], n_member=3, vocab_size=8))["identical_members"] == []


def test_inconsistent_numbers_are_named_with_their_count_and_extent(store_of: StoreOf) -> None:
    sound = hypothesis([-2.5] * 4, -2.5)
    assert list(inconsistencies(report(store_of([[sound]], length_penalty=1.0, **SIZE)))) == []
    off = hypothesis([-2.5] * 4, -2.75, cross_prex=[2.0, 2.0, 2.0, 1.25])
    checks = report(store_of([[sound], [off]], length_penalty=1.0, **SIZE))
    found = list(inconsistencies(checks))
    assert found[0] == ("1 of 2 scores differ from ln P / length ** length_penalty by up to 10 %")
    assert "prex_rmi is negative at 1 of 8 tokens, down to -0.25 nats" in found[1:]


@pytest.mark.parametrize("shift", [0.5, np.inf])
def test_the_statistic_that_differs_most_from_the_distributions_is_named(
    store_of: StoreOf, random_hypothesis: Callable[..., Hypothesis], shift: float
) -> None:
    fine = random_hypothesis(0, full="float32")
    cross = fine.statistics.cross_prex + np.array([0.0, shift, 0.0, 0.0])
    changed = replace(fine, statistics=replace(fine.statistics, cross_prex=cross))
    (found,) = inconsistencies(report(store_of([[changed]], n_member=3, vocab_size=8)))
    assert found.startswith("1 stored numbers differ from those of the stored distributions, most")
    assert "most of all cross_prex (" in found

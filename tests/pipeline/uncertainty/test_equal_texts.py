"""Hypotheses with equal texts are different by default, or become one with `merge`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from pipeline.errors import ConfigError
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.equal_texts import compare_texts
from pipeline.uncertainty.heuristics import HEURISTICS
from pipeline.uncertainty.sequence import sequence_measures
from pipeline.uncertainty.token import token_statistics

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]


def spelled(text: str, probabilities: list[list[float]]) -> Hypothesis:
    """Return a hypothesis of `text`; the members' probabilities of its tokens: [token, member]."""
    realised = np.array(probabilities)
    token = np.arange(len(realised)) % 2
    distribution = np.where(token[:, None, None] == [0, 1], realised[:, :, None], 0.0)
    distribution += np.where(token[:, None, None] == [1, 0], 1 - realised[:, :, None], 0.0)
    with np.errstate(divide="ignore"):
        logprob = np.log(distribution)
    return Hypothesis(token, text, 0.0, True, token_statistics(logprob, token))


@pytest.fixture
def spellings(store_of: StoreOf) -> Store:
    """Return one sentence: `ab` as one and as two tokens, and `c`, by two members.

    P_EP is 0.4, 0.2 and 0.1. The second spelling of `ab` has the probabilities 0.3 and 0.1.
    """
    hypotheses = [
        spelled("ab", [[0.5, 0.3]]),
        spelled("ab", [[0.6, 0.5], [0.5, 0.2]]),
        spelled("c", [[0.1, 0.1]]),
    ]
    return store_of([hypotheses], combination="expr", n_member=2, vocab_size=2)


def measured(store: Store, beam: int, temperature: float, length_norm: bool, rule: str) -> Any:
    return sequence_measures(store, beam, temperature, length_norm, equal_texts=rule).iloc[0]


def test_merged_probabilities_by_hand(spellings: Store):
    """The text `ab` has P_1 = 0.8, P_2 = 0.4, P_EP = 0.6; `c` has 0.1."""
    row = measured(spellings, 3, 1, False, "merge")
    pi = np.array([6, 1]) / 7
    assert row["expr_entropy_s"] == pytest.approx(pi @ -np.log([0.6, 0.1]), rel=1e-5)
    rmi = np.log(0.6) - np.log([0.8, 0.4]).mean()
    assert row["expr_rmi_s"] == pytest.approx(pi[0] * rmi, rel=1e-5)
    assert row["var_p"] == pytest.approx(pi[0] * 0.2**2, rel=1e-5)
    assert row["var_logp"] == pytest.approx(pi[0] * np.log([0.8, 0.4]).var(), rel=1e-5)
    assert row["ln_var_p"] == pytest.approx(np.log(row["var_p"]), rel=1e-5)
    # Weights at T = 2 come from the merged probability.
    hot = np.sqrt([0.6, 0.1]) / np.sqrt([0.6, 0.1]).sum()
    warm = measured(spellings, 3, 2, False, "merge")
    assert warm["expr_entropy_s"] == pytest.approx(hot @ -np.log([0.6, 0.1]), rel=1e-5)


def test_length_of_a_merged_hypothesis_is_the_mean_over_its_token_sequences(spellings: Store):
    """Given the text, its spellings have the shares 2/3 and 1/3: the length is 4/3."""
    row = measured(spellings, 3, 1, True, "merge")
    length, pi = 4 / 3, np.array([6, 1]) / 7
    wanted = pi @ [-np.log(0.6) / length, -np.log(0.1)]
    assert row["expr_entropy_s"] == pytest.approx(wanted, rel=1e-5)
    per_token = np.array([0.8, 0.4]) ** (1 / length)
    assert row["var_p_ln"] == pytest.approx(pi[0] * per_token.var(), rel=1e-5)
    chain = compare_chain(spellings)
    merged = (2 * chain[0] + chain[1]) / 3
    assert row["expr_entropy_c"] == pytest.approx(pi @ [merged / length, chain[2]], rel=1e-5)


def compare_chain(store: Store) -> np.ndarray:
    entropy = store.read("/token/entropy_expr").astype(float)
    return np.add.reduceat(entropy, store.token_offset[:-1])


def test_by_default_equal_texts_are_different_hypotheses(spellings: Store):
    row = measured(spellings, 3, 1, False, "keep")
    probability = np.array([0.4, 0.2, 0.1])
    wanted = probability @ -np.log(probability) / 0.7
    assert row["expr_entropy_s"] == pytest.approx(wanted, rel=1e-5)
    plain = sequence_measures(spellings, 3, 1, False).iloc[0]
    assert plain.equals(row)


def test_the_first_b_hypotheses_are_chosen_before_they_are_merged(spellings: Store):
    """B = 2 covers both spellings of `ab` and nothing else; B = 1 covers the best spelling."""
    two = measured(spellings, 2, 1, False, "merge")
    assert two["expr_entropy_s"] == pytest.approx(-np.log(0.6), rel=1e-5)
    one = measured(spellings, 1, 1, True, "merge")
    assert one.equals(measured(spellings, 1, 1, True, "keep"))


def test_a_repeated_token_sequence_counts_once(store_of: StoreOf):
    ab, c = spelled("ab", [[0.5, 0.3]]), spelled("c", [[0.1, 0.1]])
    attributes = {"combination": "expr", "n_member": 2, "vocab_size": 2}
    twice, once = store_of([[ab, ab, c]], **attributes), store_of([[ab, c]], **attributes)
    assert compare_texts(twice).repeated.tolist() == [False, True, False]
    tables = [sequence_measures(store, 3, 1, True, equal_texts="merge") for store in (twice, once)]
    # chrF compares the hypotheses as they are.
    assert_frame_equal(*(table.drop(columns="hypothesis_chrf") for table in tables))


def test_texts_are_compared_within_a_sentence(store_of: StoreOf, random_hypothesis: Make):
    def with_text(seed: int, text: str) -> Hypothesis:
        return replace(random_hypothesis(seed), text=text)

    sentences = [
        [with_text(0, "a"), with_text(1, "b"), with_text(2, "a")],
        [],
        [with_text(3, "a"), with_text(4, "a"), with_text(5, "a")],
    ]
    store = store_of(sentences, n_member=3, vocab_size=8)
    assert compare_texts(store).first.tolist() == [0, 1, 0, 3, 3, 3]
    assert compare_texts(store).surplus.tolist() == [2, 4, 5]
    table = sequence_measures(store, [1, 3], 1, True, equal_texts="merge")
    assert table["prex_entropy_s"].isna().tolist() == [False, True, False] * 2


def test_impossible_hypotheses_are_merged_without_nan(store_of: StoreOf):
    never = [spelled("a", [[0.0, 0.0]]), spelled("a", [[1.0, 0.0], [0.0, 1.0]])]
    store = store_of([never], n_member=2, vocab_size=2, combination="expr")
    row = measured(store, 2, 1, True, "merge")
    assert row["expr_entropy_s"] == np.inf
    assert not row.drop([*HEURISTICS]).isna().any()


def test_unknown_rules_are_refused(spellings: Store):
    message = r"uncertainty\.equal_texts: must be keep or merge \(got drop\)"
    with pytest.raises(ConfigError, match=message):
        measured(spellings, 1, 1, True, "drop")


@pytest.mark.parametrize("posterior", ["prex", "expr"])
def test_brute_force_all_sequences_give_entropy_and_rmi_of_the_text(
    toy: Any, store_of: StoreOf, posterior: str
):
    """The text of a sequence is the sum of its tokens, so that many sequences share one."""
    texts = [str(sum(tokens)) for tokens in toy.sequences]
    joint, member = np.exp(toy.log_posterior(posterior)), np.exp(toy.log_member)
    distinct = sorted(set(texts))
    of_text = np.array([[text == other for other in texts] for text in distinct], dtype=float)
    joint_text, member_text = of_text @ joint, of_text @ member
    order = np.argsort(-joint)
    hypotheses = [replace(toy.hypothesis(index), text=texts[index]) for index in order]
    store = store_of([hypotheses], combination=posterior, n_member=toy.n_member, vocab_size=3)
    rows = {rule: measured(store, len(order), 1, False, rule) for rule in ("keep", "merge")}
    entropy, rmi = (
        {rule: row[f"{posterior}_{name}_s"] for rule, row in rows.items()}
        for name in ("entropy", "rmi")
    )
    assert entropy["merge"] == pytest.approx(-joint_text @ np.log(joint_text), abs=1e-5)
    wanted = joint_text @ (np.log(joint_text) - np.log(member_text).mean(axis=1))
    assert rmi["merge"] == pytest.approx(wanted, abs=1e-5)
    # Chain rule: what merging removes is the entropy of the sequence given its text.
    given_text = -joint @ np.log(joint / (of_text.T @ joint_text))
    assert entropy["keep"] - entropy["merge"] == pytest.approx(given_text, abs=1e-5)
    assert rmi["merge"] < rmi["keep"]
    # Sums of token measures are about tokens: at T = 1 their mean does not change.
    for name in rows["keep"].index:
        if name.endswith("_c"):
            assert rows["merge"][name] == pytest.approx(rows["keep"][name], abs=1e-6), name


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    temperature=st.sampled_from([0.5, 1.0, 10.0]),
    length_norm=st.booleans(),
)
def test_properties_of_merging(
    store_of: StoreOf,
    random_hypothesis: Make,
    texts: list[str],
    temperature: float,
    length_norm: bool,
):
    """RMI stays >= 0, K = I + M holds, and distinct texts change nothing."""
    hypotheses = [
        replace(random_hypothesis(seed, 1 + seed), text=text) for seed, text in enumerate(texts)
    ]
    store = store_of([hypotheses], combination="expr", n_member=3, vocab_size=8)
    row = measured(store, 6, temperature, length_norm, "merge")
    assert row["expr_rmi_s"] >= -1e-9
    assert row["prex_epkl_c"] == pytest.approx(row["prex_mi_c"] + row["prex_rmi_c"], abs=1e-6)
    kept = measured(store, 6, temperature, length_norm, "keep")
    if len(set(texts)) == len(texts):
        assert row.equals(kept)

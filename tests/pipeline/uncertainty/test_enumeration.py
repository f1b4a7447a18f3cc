"""Estimators are compared with a toy ensemble whose sequences are all enumerated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.store import Store
from pipeline.uncertainty.sequence import sequence_measures
from pipeline.uncertainty.token import token_measures

StoreOf = Callable[..., Store]
POSTERIORS = ["prex", "expr"]


def exact(toy: Any, posterior: str) -> dict[str, float]:
    """Return entropy, MI, EPKL and RMI over all sequences by their definitions."""
    member, joint = np.exp(toy.log_member), toy.log_posterior(posterior)
    log_member = toy.log_member
    return {
        "entropy": -np.sum(np.exp(joint) * joint),
        "mi": np.mean(np.sum(member * (log_member - joint[:, None]), axis=0)),
        "epkl": np.mean(
            [
                np.sum(member[:, m] * (log_member[:, m] - log_member[:, n]))
                for m in range(toy.n_member)
                for n in range(toy.n_member)
            ]
        ),
        "rmi": np.mean(np.sum(np.exp(joint)[:, None] * (joint[:, None] - log_member), axis=0)),
    }


def chain(toy: Any, posterior: str, name: str, length_norm: bool = False) -> float:
    """Return the expectation under the posterior of a token measure summed along sequences."""
    sums = [
        token_measures(distribution, np.array(tokens))[name].sum()
        / (len(tokens) if length_norm else 1)
        for tokens, distribution in zip(toy.sequences, toy.distributions, strict=True)
    ]
    return float(np.sum(np.exp(toy.log_posterior(posterior)) * sums))


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_enumerated_probabilities_sum_to_1(toy: Any, posterior: str):
    assert np.exp(toy.log_posterior(posterior)).sum() == pytest.approx(1)


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.parametrize("measure", ["entropy", "rmi"])
def test_chain_rule_entropy_and_rmi_are_exact(toy: Any, posterior: str, measure: str):
    expected = exact(toy, posterior)[measure]
    assert chain(toy, posterior, f"{posterior}_{measure}") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["mi", "epkl"])
def test_only_prefix_weights_make_mi_and_epkl_exact_under_expr(toy: Any, measure: str):
    expected = exact(toy, "expr")[measure]
    assert chain(toy, "expr", f"expr_{measure}_w") == pytest.approx(expected, abs=1e-12)
    assert abs(chain(toy, "expr", f"expr_{measure}") - expected) > 0.02
    assert abs(chain(toy, "prex", f"prex_{measure}") - exact(toy, "prex")[measure]) > 0.02


def test_chain_and_sequence_form_of_mi_differ_under_prex(toy: Any):
    values = exact(toy, "prex")
    entropy_member = -np.mean(np.sum(np.exp(toy.log_member) * toy.log_member, axis=0))
    assert abs(values["entropy"] - entropy_member - values["mi"]) > 1e-3


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_all_sequences_as_one_beam_give_the_exact_values(
    toy: Any, store_of: StoreOf, posterior: str
):
    """At T = 1 the importance weights of all sequences are their probabilities."""
    order = np.argsort(-toy.log_posterior(posterior))
    store = store_of(
        [[toy.hypothesis(index) for index in order]],
        combination=posterior,
        n_member=toy.n_member,
        vocab_size=3,
    )
    table = sequence_measures(store, beam=len(order), temperature=1, length_norm=[False, True])
    plain, normalised = table.iloc[0], table.iloc[1]
    values = exact(toy, posterior)
    for name in ("entropy", "rmi"):
        for form in ("c", "s"):
            wanted = values[name]
            assert plain[f"{posterior}_{name}_{form}"] == pytest.approx(wanted, abs=1e-5)
    if posterior == "expr":
        assert plain["expr_mi_w_c"] == pytest.approx(values["mi"], abs=1e-5)
        assert plain["expr_epkl_w_c"] == pytest.approx(values["epkl"], abs=1e-5)
    length = np.array([len(tokens) for tokens in toy.sequences])
    joint = toy.log_posterior(posterior)
    entropy_s = -np.sum(np.exp(joint) * joint / length)
    entropy_c = chain(toy, posterior, f"{posterior}_entropy", length_norm=True)
    assert normalised[f"{posterior}_entropy_s"] == pytest.approx(entropy_s, abs=1e-5)
    assert normalised[f"{posterior}_entropy_c"] == pytest.approx(entropy_c, abs=1e-5)
    assert abs(entropy_s - entropy_c) > 1e-3


@pytest.mark.parametrize("posterior", POSTERIORS)
@pytest.mark.slow
def test_samples_of_the_posterior_converge(toy: Any, store_of: StoreOf, posterior: str):
    probability = np.exp(toy.log_posterior(posterior))
    n_sample = 4000
    drawn = np.random.default_rng(1).choice(len(probability), n_sample, p=probability)
    hypotheses = [toy.hypothesis(index) for index in range(len(probability))]
    store = store_of(
        [[hypotheses[index] for index in drawn]],
        regime="sample",
        combination=posterior,
        sampling_temperature=1.0,
        n_member=toy.n_member,
        vocab_size=3,
    )
    row = sequence_measures(store, beam=n_sample, temperature=1, length_norm=False).iloc[0]
    values = exact(toy, posterior)
    names = {f"{posterior}_{n}_{f}mc": values[n] for n in ("entropy", "rmi") for f in ("s", "c")}
    if posterior == "expr":
        names |= {"expr_mi_w_cmc": values["mi"], "expr_epkl_w_cmc": values["epkl"]}
        assert abs(row["expr_epkl_cmc"] - values["epkl"]) > 0.05
    for name, wanted in names.items():
        assert row[name] == pytest.approx(wanted, abs=0.06), name
    assert "prex_entropy_c" not in row


@pytest.mark.slow
def test_samples_of_each_member_converge(toy: Any, store_of: StoreOf):
    random, n_sample = np.random.default_rng(2), 2000
    hypotheses = []
    for _ in range(n_sample):
        for member in range(toy.n_member):
            index = random.choice(len(toy.sequences), p=np.exp(toy.log_member[:, member]))
            hypotheses.append((index, member))
    built = {drawn: toy.hypothesis(*drawn) for drawn in set(hypotheses)}
    store = store_of(
        [[built[drawn] for drawn in hypotheses], [built[hypotheses[0]]]],
        regime="sample",
        combination="member",
        n_member=toy.n_member,
        vocab_size=3,
    )
    table = sequence_measures(store, beam=n_sample, temperature=1, length_norm=False)
    for posterior in POSTERIORS:
        wanted = exact(toy, posterior)["mi"]
        assert table[f"{posterior}_mi_mc"][0] == pytest.approx(wanted, abs=0.06)
    assert table["epkl_mc"][0] == pytest.approx(exact(toy, "expr")["epkl"], abs=0.12)
    # The second sentence has a sample of only one member.
    assert table["epkl_mc"].isna().tolist() == [False, True]

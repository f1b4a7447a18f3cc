"""Sequence measures equal the sums of the paper, and special cases are defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from pipeline.errors import ConfigError, StoreError
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.blocks import token_blocks
from pipeline.uncertainty.heuristics import HEURISTICS
from pipeline.uncertainty.sequence import sequence_measures
from pipeline.uncertainty.token import token_statistics

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
SIZE = {"n_member": 3, "vocab_size": 8}


def sentences_of(make: Make, n_hypothesis: list[int], **kwargs: Any) -> list[list[Hypothesis]]:
    return [
        [make(100 * index + rank, 1 + (index + rank) % 5, **kwargs) for rank in range(count)]
        for index, count in enumerate(n_hypothesis)
    ]


def written_out(
    hypotheses: list[Hypothesis], posterior: str, temperature: float, length_norm: bool
) -> dict[str, float]:
    """Return the importance-weighted measures of one sentence, hypothesis by hypothesis."""
    member = np.array([item.statistics.logprob.sum(axis=0) for item in hypotheses], np.float64)
    joint = {
        "expr": np.log(np.exp(member).mean(axis=1)),
        "prex": np.array(
            [np.log(np.exp(item.statistics.logprob).mean(axis=1)).sum() for item in hypotheses]
        ),
    }
    pi = np.exp(joint[posterior] / temperature)
    pi /= pi.sum()
    length = np.array([len(item.token_id) for item in hypotheses])
    rate = pi / length if length_norm else pi
    data = np.array([item.statistics.entropy_member.mean(axis=1).sum() for item in hypotheses])
    result = {}
    for p in ("prex", "expr"):
        entropy = np.array([getattr(item.statistics, f"entropy_{p}").sum() for item in hypotheses])
        cross = np.array([getattr(item.statistics, f"cross_{p}").sum() for item in hypotheses])
        result[f"{p}_entropy_c"] = np.sum(rate * entropy)
        result[f"{p}_mi_c"] = np.sum(rate * (entropy - data))
        result[f"{p}_epkl_c"] = np.sum(rate * (cross - data))
        result[f"{p}_rmi_c"] = np.sum(rate * (cross - entropy))
        result[f"{p}_entropy_s"] = np.sum(-rate * joint[p])
        result[f"{p}_rmi_s"] = np.sum(rate * (joint[p] - member.mean(axis=1)))
    per_token = member / length[:, None]
    result["var_p"] = np.sum(pi * np.exp(member).var(axis=1))
    result["var_p_ln"] = np.sum(pi * np.exp(per_token).var(axis=1))
    result["var_logp"] = np.sum(pi * member.var(axis=1))
    result["var_logp_ln"] = np.sum(pi * per_token.var(axis=1))
    result["ln_var_p"] = np.log(result["var_p"])
    result["data_c"] = np.sum(rate * data)
    result["member_score"] = np.sum(-rate * member.mean(axis=1))
    result["d_combo"] = np.sum(pi * (per_token.mean(axis=1) / per_token.var(axis=1) - 1))
    result["hypothesis_length"] = np.sum(pi * length)
    of_tokens = [item.statistics for item in hypotheses]
    entropy = [token.entropy_member.mean(axis=1).max() for token in of_tokens]
    result["data_max"] = np.sum(pi * np.array(entropy))
    std = [token.logprob.astype(np.float64).std(axis=0).mean() for token in of_tokens]
    result["score_std"] = np.sum(pi * np.array(std))
    return result


@pytest.mark.parametrize("weights_from", ["decoding", "expr"])
def test_every_setting_of_the_grid_equals_the_sums_of_the_paper(
    store_of: StoreOf, random_hypothesis: Make, weights_from: str
):
    sentences = sentences_of(random_hypothesis, [3, 0, 1, 5, 2, 0])
    store = store_of(sentences, **SIZE)
    beams, temperatures, norms = [1, 2, 5], [1, 10.0], [True, False]
    table = sequence_measures(
        store, beam=beams, temperature=temperatures, length_norm=norms, weights_from=weights_from
    )
    assert len(table) == 12 * len(sentences)
    posterior = "prex" if weights_from == "decoding" else "expr"
    for row in table.to_dict("records"):
        hypotheses = sentences[row["sentence_id"]][: row["beam"]]
        if not hypotheses:
            assert all(np.isnan(value) for value in list(row.values())[5:])
            continue
        expected = written_out(hypotheses, posterior, row["temperature"], row["length_norm"])
        for name, wanted in expected.items():
            assert row[name] == pytest.approx(wanted, rel=1e-5, abs=1e-6), name


def test_block_size_does_not_change_sequence_measures(
    store_of: StoreOf, random_hypothesis: Make, monkeypatch: pytest.MonkeyPatch
):
    store = store_of(sentences_of(random_hypothesis, [2, 3, 0, 4]), **SIZE)
    settings: dict[str, Any] = {"beam": 4, "temperature": 2, "length_norm": True}
    expected = sequence_measures(store, **settings)
    monkeypatch.setattr("pipeline.uncertainty.blocks._BLOCK_BYTES", 1)
    assert len(list(token_blocks(store))) == 9
    assert_frame_equal(sequence_measures(store, **settings), expected, rtol=1e-12)


def test_case_2_single_member_has_no_knowledge_uncertainty(
    store_of: StoreOf, random_hypothesis: Make
):
    store = store_of(sentences_of(random_hypothesis, [2, 1], n_member=1), n_member=1, vocab_size=8)
    table = sequence_measures(store, beam=2, temperature=1, length_norm=True)
    knowledge = [n for n in table if any(k in n for k in ("mi", "epkl", "xbleu", "xwer"))]
    knowledge += ["var_p", "var_p_ln", "var_logp", "var_logp_ln"]
    assert np.all(table[knowledge] == 0)
    assert np.all(table["d_combo"] == -np.inf)


@pytest.mark.parametrize("regime", ["beam", "sample"])
def test_posteriors_of_a_single_member_are_equal(
    store_of: StoreOf, random_hypothesis: Make, regime: str
):
    sentence = [replace(random_hypothesis(0, n_member=1), member=0)]
    tables = [
        sequence_measures(
            store_of([sentence], regime=regime, combination=name, n_member=1, vocab_size=8),
            beam=1,
            temperature=1,
            length_norm=True,
        )
        for name in ("prex", "expr", "member")
    ]
    assert_frame_equal(tables[0], tables[1])
    assert_frame_equal(tables[0], tables[2][tables[0].columns])


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_case_6_weights_come_from_raw_logprobs_and_never_from_scores(
    store_of: StoreOf, random_hypothesis: Make, length_penalty: float
):
    """By hand, the weights are a softmax of ln P of the complete sequence over T."""
    sentence = [random_hypothesis(seed, 2 + 3 * seed) for seed in range(3)]
    raw = np.array([np.log(np.exp(item.statistics.logprob).mean(1)).sum() for item in sentence])
    length = np.array([len(item.token_id) for item in sentence])
    scores = raw / length**length_penalty
    scored = [replace(item, score=score) for item, score in zip(sentence, scores, strict=True)]
    store = store_of([scored], length_penalty=length_penalty, **SIZE)
    weight = np.exp(raw / 10) / np.exp(raw / 10).sum()
    for length_norm in (True, False):
        table = sequence_measures(store, beam=3, temperature=10, length_norm=length_norm)
        rate = -raw / length if length_norm else -raw
        assert table["prex_entropy_s"][0] == pytest.approx(weight @ rate, rel=1e-5)


def test_temperature_flattens_the_weights(store_of: StoreOf, random_hypothesis: Make):
    sentence = [random_hypothesis(seed, 1 + seed) for seed in range(4)]
    store = store_of([sentence], **SIZE)
    hot = sequence_measures(store, beam=4, temperature=1e9, length_norm=True)
    means = [item.statistics.entropy_prex.mean() for item in sentence]
    assert hot["prex_entropy_c"][0] == pytest.approx(np.mean(means), rel=1e-5)


def with_logprob(hypothesis: Hypothesis, logprob: np.ndarray) -> Hypothesis:
    return replace(hypothesis, statistics=replace(hypothesis.statistics, logprob=logprob))


def test_case_1_impossible_hypotheses_give_infinity_and_no_nan(
    store_of: StoreOf, random_hypothesis: Make
):
    """The log-prob is -inf in one member, in every member, or for every hypothesis."""
    base = random_hypothesis(1, 2)
    in_one = base.statistics.logprob.copy()
    in_one[0, 0] = -np.inf
    in_every = np.full_like(in_one, -np.inf)
    crossed = base.statistics.logprob.copy()
    crossed[0, 0] = crossed[1, 1] = crossed[1, 2] = -np.inf
    sentences = [
        [with_logprob(base, in_one)],
        [base, with_logprob(base, in_every)],
        [with_logprob(base, in_every), with_logprob(base, in_every)],
        [with_logprob(base, crossed)],
    ]
    store = store_of(sentences, **SIZE)
    table = sequence_measures(store, beam=2, temperature=1, length_norm=True)
    assert not table.drop(columns=[*HEURISTICS]).isna().any().any()
    assert table["prex_rmi_s"].tolist()[0] == np.inf
    assert table["var_logp"].tolist()[0] == np.inf
    alone = sequence_measures(store_of([[base]], **SIZE), beam=1, temperature=1, length_norm=True)
    for name in ("prex_entropy_s", "prex_rmi_s", "var_logp", "prex_entropy_c"):
        assert table[name][1] == pytest.approx(alone[name][0])
    assert table["prex_rmi_s"][2] == 0
    assert table["prex_entropy_s"][2] == table["expr_entropy_s"][3] == np.inf


def test_very_long_hypotheses_keep_their_rank(store_of: StoreOf, random_hypothesis: Make):
    sentences = [[random_hypothesis(seed, 600)] for seed in range(3)]
    table = sequence_measures(store_of(sentences, **SIZE), beam=1, temperature=1, length_norm=True)
    assert (table["var_p"] == 0).all()
    assert table["ln_var_p"].nunique() == 3
    assert np.isfinite(table["ln_var_p"]).all()


def test_eos_can_be_set_to_zero(store_of: StoreOf, random_hypothesis: Make):
    finished = random_hypothesis(3, 4)
    cut = replace(finished, finished=False)
    for regime, silent in (("beam", True), ("teacher_forcing", False)):
        store = store_of([[finished], [cut]], regime=regime, **SIZE)
        row, uncut = sequence_measures(
            store, beam=1, temperature=1, length_norm=True, eos="zero"
        ).to_dict("records")
        entropy = finished.statistics.entropy_prex
        kept = entropy[:-1] if silent else entropy
        assert row["prex_entropy_c"] == pytest.approx(kept.sum() / 4, rel=1e-5)
        assert uncut["prex_entropy_c"] == pytest.approx(entropy.mean(), rel=1e-5)
        assert row["prex_entropy_s"] == uncut["prex_entropy_s"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_subset_of_members_is_computed_from_full_distributions(
    store_of: StoreOf, random_hypothesis: Make, dtype: str
):
    full = store_of(sentences_of(random_hypothesis, [2, 3], full=dtype), **SIZE)
    settings: dict[str, Any] = {"beam": 3, "temperature": 2, "length_norm": True}
    tolerance = 1e-5 if dtype == "float32" else 1e-2
    assert_frame_equal(
        sequence_measures(full, members=[2, 0, 1], **settings),
        sequence_measures(full, **settings),
        rtol=0,
        atol=tolerance,
    )
    subset = sequence_measures(full, members=[2], **settings)
    assert subset["prex_mi_c"].tolist() == [0, 0]


def test_subset_equals_a_store_of_those_members(store_of: StoreOf, random_hypothesis: Make):
    hypotheses = [random_hypothesis(seed, 3 + seed, full="float32") for seed in range(3)]
    chosen = [2, 0]
    alone = []
    for hypothesis in hypotheses:
        assert hypothesis.full_logprob is not None
        logprob = hypothesis.full_logprob[:, chosen]
        statistics = token_statistics(logprob, hypothesis.token_id)
        alone.append(replace(hypothesis, statistics=statistics, full_logprob=logprob))
    settings: dict[str, Any] = {"beam": 3, "temperature": 2, "length_norm": [True, False]}
    subset = sequence_measures(store_of([hypotheses], **SIZE), members=chosen, **settings)
    expected = sequence_measures(store_of([alone], **(SIZE | {"n_member": 2})), **settings)
    assert_frame_equal(subset, expected, rtol=1e-5, atol=1e-6)


def test_subset_of_members_from_statistics_has_measures_of_realised_tokens(
    store_of: StoreOf, random_hypothesis: Make
):
    store = store_of(sentences_of(random_hypothesis, [2, 3]), **SIZE)
    settings: dict[str, Any] = {"beam": 3, "temperature": 2, "length_norm": True, "members": [0, 2]}
    table = sequence_measures(store, **settings)
    assert {"prex_entropy_s", "expr_rmi_s", "var_p"} <= set(table)
    assert "prex_mi_c" not in table
    with pytest.raises(StoreError, match="cannot give prex_mi_c: a subset of members needs"):
        sequence_measures(store, measures=["prex_mi_c"], **settings)
    with pytest.raises(ConfigError, match=r"members: must be distinct indices in \[0, 3\)"):
        sequence_measures(store, **(settings | {"members": [0, 3]}))


@pytest.mark.parametrize(
    ("attributes", "measure", "message"),
    [
        ({"regime": "beam"}, "prex_rmi_smc", "needs samples"),
        ({"sampling_temperature": 0.7}, "prex_rmi_smc", "sampling_temperature=0.7"),
        ({"sampling_top_k": 5}, "prex_rmi_smc", "sampling_top_k=5"),
        ({"sampling_top_p": 0.9}, "prex_rmi_smc", "sampling_top_p=0.9"),
        ({}, "expr_rmi_smc", "samples of expr, not combination=prex"),
        ({}, "epkl_mc", "samples of each member"),
        ({}, "prex_rmi_s", "not importance-weighted"),
    ],
)
def test_stores_with_other_samples_are_refused(
    store_of: StoreOf,
    random_hypothesis: Make,
    attributes: dict[str, Any],
    measure: str,
    message: str,
):
    store = store_of([[random_hypothesis(0)]], **(SIZE | {"regime": "sample"} | attributes))
    with pytest.raises(StoreError, match=message):
        sequence_measures(store, beam=1, temperature=1, length_norm=True, measures=[measure])


def test_samples_of_members_are_refused_for_a_subset(store_of: StoreOf, random_hypothesis: Make):
    drawn = [replace(random_hypothesis(member), member=member) for member in range(3)]
    store = store_of([drawn], **(SIZE | {"regime": "sample", "combination": "member"}))
    assert "epkl_mc" in sequence_measures(store, beam=1, temperature=1, length_norm=True)
    subset: dict[str, Any] = {"beam": 1, "temperature": 1, "length_norm": True, "members": [1]}
    assert "epkl_mc" not in sequence_measures(store, **subset)
    with pytest.raises(StoreError, match="samples of all members, not of a subset"):
        sequence_measures(store, measures=["epkl_mc"], **subset)


def test_a_sample_that_its_own_member_excludes_is_refused(
    store_of: StoreOf, random_hypothesis: Make
):
    drawn = replace(random_hypothesis(0), member=1)
    excluded = np.asarray(drawn.statistics.logprob).copy()
    excluded[2, 1] = -np.inf
    drawn = replace(drawn, statistics=replace(drawn.statistics, logprob=excluded))
    sampled = {"regime": "sample", "combination": "member"}
    store = store_of([[drawn]], **(SIZE | sampled))
    with pytest.raises(StoreError, match="sentence 0, hypothesis 0: the member that drew"):
        sequence_measures(store, beam=1, temperature=1, length_norm=True)


def test_samples_without_truncation_are_accepted(store_of: StoreOf, random_hypothesis: Make):
    untruncated = {"sampling_temperature": 1.0, "sampling_top_k": -1, "sampling_top_p": -1.0}
    store = store_of([[random_hypothesis(0)]], regime="sample", **SIZE, **untruncated)
    assert "prex_rmi_smc" in sequence_measures(store, beam=1, temperature=1, length_norm=True)


def test_positional_settings_and_arrays_are_accepted(store_of: StoreOf, random_hypothesis: Make):
    store = store_of([[random_hypothesis(0), random_hypothesis(1)]], **SIZE)
    assert_frame_equal(
        sequence_measures(store, np.array([1, 2]), np.array([1.0, 10.0]), True),
        sequence_measures(store, beam=[1, 2], temperature=(1, 10), length_norm=[True]),
    )


def test_weights_need_a_named_posterior_if_members_decoded(
    store_of: StoreOf, random_hypothesis: Make
):
    sentence = [replace(random_hypothesis(seed), member=seed) for seed in range(2)]
    store = store_of([sentence], combination="member", **SIZE)
    settings: dict[str, Any] = {"beam": 2, "temperature": 1, "length_norm": True}
    assert "prex_entropy_s" not in sequence_measures(store, **settings)
    with pytest.raises(StoreError, match="weights need the posterior that decoded, not comb"):
        sequence_measures(store, measures=["prex_entropy_s"], **settings)
    prex = store_of([[random_hypothesis(seed) for seed in range(2)]], **SIZE)
    assert_frame_equal(
        sequence_measures(store, weights_from="prex", **settings),
        sequence_measures(prex, **settings),
    )


def test_unknown_measures_are_refused(store_of: StoreOf, random_hypothesis: Make):
    store = store_of([[random_hypothesis(0)]], **SIZE)
    with pytest.raises(ConfigError, match="measures: prex_entrpy_c is not a measure"):
        sequence_measures(
            store, beam=1, temperature=1, length_norm=True, measures=["prex_entrpy_c"]
        )


@pytest.mark.parametrize(
    "change",
    [
        {"beam": 0},
        {"beam": 1.5},
        {"beam": []},
        {"temperature": 0},
        {"temperature": -1},
        {"temperature": [1, -1]},
        {"beam": [1, 0]},
        {"temperature": float("inf")},
        {"length_norm": []},
        {"weights_from": "dec"},
        {"eos": "none"},
    ],
)
def test_settings_out_of_range_are_refused(store_of: StoreOf, change: dict[str, Any]):
    settings: dict[str, Any] = {"beam": 1, "temperature": 1, "length_norm": True}
    with pytest.raises(ConfigError, match=f"{next(iter(change))}: must be"):
        sequence_measures(store_of([[]], **SIZE), **(settings | change))


def test_store_without_any_hypothesis_has_an_empty_table(store_of: StoreOf):
    table = sequence_measures(store_of([[], []], **SIZE), beam=5, temperature=1, length_norm=True)
    assert table["prex_mi_c"].isna().all()
    assert table["flag"].tolist() == [4, 4]

"""X-BLEU and X-WER of the hypotheses of single members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.quality.speech import sentence_wer_percent
from pipeline.quality.translation import sentence_bleu
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.heuristics import heuristic_measures, heuristics_reason

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]


def single(store_of: StoreOf, make: Make, texts: list[str | None], **attributes: object) -> Store:
    hypothesis = make(0, n_member=1)
    sentences = [[] if text is None else [replace(hypothesis, text=text)] for text in texts]
    return store_of(sentences, n_member=1, vocab_size=8, **attributes)


def test_measures_are_mean_squares_over_ordered_pairs(store_of: StoreOf, random_hypothesis: Make):
    ensemble = store_of([[random_hypothesis(0)]] * 3, n_member=3, vocab_size=8)
    texts = [
        ["a b c d", "the cat sat on the mat", "one"],
        ["a b c d", "the cat sat on a mat today", "two words"],
        ["a b c d", "a dog", None],
    ]
    members = [single(store_of, random_hypothesis, list(of_member)) for of_member in texts]
    values = heuristic_measures(ensemble, members)
    second = [str(of_member[1]) for of_member in texts]
    pairs = [(a, b) for a in second for b in second if a is not b]
    bleu = np.mean([(100 - sentence_bleu([a], [b])[0]) ** 2 for a, b in pairs])
    wer = np.mean([sentence_wer_percent([a], [b])[0] ** 2 for a, b in pairs])
    assert values["xbleu"][:2] == pytest.approx([0, bleu], abs=1e-9)
    assert values["xwer"][:2] == pytest.approx([0, wer])
    assert np.isnan(values["xbleu"][2])
    assert np.isnan(values["xwer"][2])


def test_no_value_without_member_stores(store_of: StoreOf, random_hypothesis: Make):
    ensemble = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    two = [single(store_of, random_hypothesis, ["a"]) for _ in range(2)]
    for members in ([], two):
        assert np.isnan(heuristic_measures(ensemble, members)["xbleu"]).all()


def test_decodes_of_several_members_are_refused(store_of: StoreOf, random_hypothesis: Make):
    ensemble = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    with pytest.raises(StoreError, match=r"n_member must be 1 \(got 3\)"):
        heuristic_measures(ensemble, [ensemble] * 3)


def test_member_stores_of_another_test_set_are_refused(store_of: StoreOf, random_hypothesis: Make):
    ensemble = store_of([[random_hypothesis(0)]] * 2, n_member=3, vocab_size=8)
    members = [single(store_of, random_hypothesis, ["a"]) for _ in range(3)]
    with pytest.raises(StoreError, match="/sentence/source differs from that of"):
        heuristic_measures(ensemble, members)


def test_member_stores_must_be_of_one_set_and_of_each_member(
    store_of: StoreOf, random_hypothesis: Make
):
    hypothesis, names = random_hypothesis(0, n_member=2), ["red", "blue"]
    ensemble = store_of([[hypothesis]], members=names, vocab_size=8, test_set="LTC")
    red, blue, unknown = (
        single(store_of, random_hypothesis, ["a"], members=[name], test_set=test_set)
        for name, test_set in (("red", "LTC"), ("blue", "LTC"), ("blue", "LTO"))
    )
    assert heuristic_measures(ensemble, [blue, red])["xwer"] == [0]
    with pytest.raises(StoreError, match=r"red, blue \(got red, red\)"):
        heuristic_measures(ensemble, [red, red])
    with pytest.raises(StoreError, match=r"attribute test_set must be LTC, .* \(got LTO\)"):
        heuristic_measures(ensemble, [red, unknown])


def test_a_single_member_never_disagrees(store_of: StoreOf, random_hypothesis: Make):
    alone = single(store_of, random_hypothesis, ["a", None])
    for values in heuristic_measures(alone, []).values():
        np.testing.assert_array_equal(values, [0, np.nan])
    assert heuristics_reason(alone, []) is None


@pytest.mark.parametrize("given", [0, 2, 4])
def test_all_members_must_have_decoded(store_of: StoreOf, random_hypothesis: Make, given: int):
    ensemble = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    members = [single(store_of, random_hypothesis, ["a"]) for _ in range(given)]
    reason = f"needs the decodes of all 3 single members, got {given}"
    assert heuristics_reason(ensemble, members) == reason
    assert np.isnan(heuristic_measures(ensemble, members)["xwer"]).all()


def test_two_members_by_hand(store_of: StoreOf, random_hypothesis: Make):
    """One of two words, and one of one word, is wrong: 50 and 100 percent."""
    hypothesis = random_hypothesis(0, n_member=2)
    ensemble = store_of([[hypothesis], []], n_member=2, vocab_size=8)
    members = [single(store_of, random_hypothesis, [text, "a"]) for text in ("a b", "a")]
    values = heuristic_measures(ensemble, members)
    np.testing.assert_array_equal(values["xwer"], [(50**2 + 100**2) / 2, np.nan])

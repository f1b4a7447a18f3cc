"""X-BLEU, X-WER and X-chrF of the hypotheses of single members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from pipeline.errors import ConfigError, DataError, StoreError
from pipeline.quality.speech import sentence_wer_percent, sentence_wer_percent_of_pairs
from pipeline.quality.translation import corpus_chrf, sentence_bleu, sentence_bleu_of_pairs
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.heuristics import (
    HEURISTICS,
    heuristic_measures,
    heuristics_reason,
    xbleu,
)

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]


SCORER = BLEU(effective_order=True)
WORDS = ["a", "b", "c", "the", ",", "3.5", "e\u0301", "\u00e9"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
# [sentence][system]
TEXTS = st.integers(2, 4).flatmap(
    lambda n_system: st.lists(st.lists(TEXT, min_size=n_system, max_size=n_system), max_size=4)
)


def single(store_of: StoreOf, make: Make, texts: list[str | None], **attributes: object) -> Store:
    hypothesis = make(0, n_member=1)
    sentences = [[] if text is None else [replace(hypothesis, text=text)] for text in texts]
    return store_of(sentences, n_member=1, vocab_size=8, **attributes)


def test_measures_are_means_over_ordered_pairs(store_of: StoreOf, random_hypothesis: Make):
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
    chrf = np.mean([100 - corpus_chrf([a], [b]) for a, b in pairs])
    assert values["xchrf"][:2] == pytest.approx([0, chrf])
    for name in HEURISTICS:
        assert np.isnan(values[name][2])


def test_xwer_compares_words_of_transcripts_on_request(
    store_of: StoreOf, random_hypothesis: Make
) -> None:
    ensemble = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    members = [single(store_of, random_hypothesis, [text]) for text in ("It is.", "it is", "it")]
    decoded, words = (
        heuristic_measures(ensemble, members, transcripts=transcripts)
        for transcripts in ("as_decoded", "words")
    )
    assert decoded["xbleu"] == words["xbleu"]
    # Two words differ from one in half of the words or in all of them, in four of six pairs.
    assert words["xwer"] == pytest.approx([2 * (50**2 + 100**2) / 6])
    assert decoded["xwer"] > words["xwer"]


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


def percent_of_sacrebleu(hypothesis: str, reference: str) -> float:
    score = SCORER.sentence_score(hypothesis, [reference])
    return 100 if score.sys_len + score.ref_len == 0 else min(score.score, 100)


def xbleu_of_sacrebleu(texts: list[list[str]], n_system: int) -> np.ndarray:
    """X-BLEU [sentence] of [sentence][system], by sacrebleu's own sentence BLEU of each pair."""
    normal = [[normalize("NFC", text) for text in of_systems] for of_systems in texts]
    squares = [
        [(100 - percent_of_sacrebleu(of_systems[a], of_systems[b])) ** 2 for of_systems in normal]
        for a, b in permutations(range(n_system), 2)
    ]
    return np.mean(squares, axis=0)


@given(TEXTS)
def test_xbleu_equals_sacrebleu_to_the_last_digit(texts):
    n_system = len(texts[0]) if texts else 2
    by_system = {f"s{index}": [row[index] for row in texts] for index in range(n_system)}
    np.testing.assert_array_equal(xbleu(by_system), xbleu_of_sacrebleu(texts, n_system))


@given(TEXTS)
def test_pairs_have_the_values_of_single_comparisons(texts):
    columns = [list(column) for column in zip(*texts, strict=True)]
    if not columns:
        return
    bleu, wer = sentence_bleu_of_pairs(columns), sentence_wer_percent_of_pairs(columns)
    for (a, one), (b, other) in permutations(enumerate(columns), 2):
        np.testing.assert_array_equal(bleu[a, b], sentence_bleu(one, other))
        np.testing.assert_array_equal(wer[a, b], sentence_wer_percent(one, other))


def test_xbleu_by_hand():
    """BLEU of the first pair is the fourth root of 4/5 * 3/4 * 2/3 * 1/2, both ways.

    In the second, `a` has the brevity penalty 1/e, and `a b` the precisions 1/2 and (smoothed) 1/2.
    """
    texts = {"one": ["a b c d e", "a", "a"], "other": ["a b c d f", "a b", None]}
    expected = [(100 - 100 * 0.2**0.25) ** 2, ((100 - 100 / np.e) ** 2 + 50**2) / 2, np.nan]
    np.testing.assert_allclose(xbleu(texts), expected, rtol=1e-12)


def test_one_system_never_disagrees():
    np.testing.assert_array_equal(xbleu({"one": ["a", None]}), [0, np.nan])


def test_xbleu_takes_a_tokeniser():
    texts = {"one": ["abcd"], "other": ["abcx"]}
    assert xbleu(texts) == [100**2]
    assert xbleu(texts, "char") < [100**2]


def test_systems_must_have_the_same_number_of_texts():
    with pytest.raises(DataError, match="texts_by_system: no system"):
        xbleu({})
    with pytest.raises(DataError, match="system b has 1 texts and system a has 2"):
        xbleu({"a": ["x", "y"], "b": ["x"]})


def test_a_tokeniser_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"tokeniser: must be a tokeniser of sacrebleu \(got 31a"):
        xbleu({"a": ["x"], "b": ["x"]}, "31a")

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from pipeline.errors import DataError
from pipeline.metrics import corpus_bleu, sentence_bleu
from pipeline.quality.translation import bleu_signature, chrf_signature, corpus_chrf

WORDS = ["a", "b", "c", "d", ",", "3.5"]
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8)


@given(PAIRS)
def test_equals_sacrebleu(pairs):
    hypotheses, references = (list(side) for side in zip(*pairs, strict=True))
    expected = BLEU().corpus_score(hypotheses, [references]).score
    assert corpus_bleu(hypotheses, references) == pytest.approx(expected)
    scorer = BLEU(effective_order=True)
    expected_each = [
        scorer.sentence_score(hypothesis, [reference]).score for hypothesis, reference in pairs
    ]
    np.testing.assert_allclose(sentence_bleu(hypotheses, references), expected_each)


@given(PAIRS)
def test_chrf_equals_sacrebleu(pairs):
    hypotheses, references = (list(side) for side in zip(*pairs, strict=True))
    expected = CHRF().corpus_score(hypotheses, [references]).score
    assert corpus_chrf(hypotheses, references) == pytest.approx(expected)


def test_case_9_a_wrong_word_never_beats_a_correct_one():
    wrong, right, partly = sentence_bleu(["x", "a", "a x"], ["a b c", "a", "a b"])
    assert wrong == 0
    assert right == 100
    assert 0 < partly < 100


@pytest.mark.parametrize(
    ("hypothesis", "reference", "percent"),
    [("a b", "", 0), ("", "a b", 0), ("", "", 100), (" \t", " ", 100), ("a", "\t", 0)],
)
def test_case_14_empty_text_has_one_rule_for_sentence_and_corpus(hypothesis, reference, percent):
    assert sentence_bleu([hypothesis], [reference]) == [percent]
    assert corpus_bleu([hypothesis], [reference]) == percent
    assert corpus_chrf([hypothesis], [reference]) == percent


def test_an_empty_pair_adds_nothing_to_a_corpus():
    texts = ["the cat sat on the mat", "a dog"], ["the cat sat on a mat", "a dog"]
    with_empty = [*texts[0], ""], [*texts[1], ""]
    assert corpus_bleu(*with_empty) == corpus_bleu(*texts)
    assert corpus_chrf(*with_empty) == corpus_chrf(*texts)


def test_metrics_without_sentences_are_undefined():
    assert np.isnan(corpus_bleu([], []))
    assert np.isnan(corpus_chrf([], []))
    assert len(sentence_bleu([], [])) == 0


def test_unequal_numbers_of_texts_are_rejected():
    with pytest.raises(DataError, match="hypotheses: 2 for 1 references"):
        sentence_bleu(["a", "b"], ["a"])


def test_the_signatures_are_those_of_sacrebleu():
    assert chrf_signature().startswith("chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|")
    assert bleu_signature().startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")

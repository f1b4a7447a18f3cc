import jiwer
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from pipeline.errors import DataError
from pipeline.metrics import corpus_wer_percent, sentence_wer_percent
from pipeline.quality.speech import (
    cer_signature,
    character_error_counts,
    corpus_cer_percent,
    word_error_counts,
)

WORDS = ["go", "stop", "left", "it's", "a:b"]
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(SENTENCE.map(" ".join), SENTENCE.map(" ".join)), min_size=1, max_size=6)


def edits(reference, hypothesis):
    return Levenshtein.distance(reference, hypothesis)


@given(PAIRS)
def test_counts_equal_those_of_another_implementation(pairs):
    hypotheses, references = (list(side) for side in zip(*pairs, strict=True))
    words = word_error_counts(hypotheses, references)
    split = [(reference.split(), hypothesis.split()) for hypothesis, reference in pairs]
    assert words.edits.tolist() == [edits(*pair) for pair in split]
    assert words.reference_length.tolist() == [len(reference) for reference, _ in split]
    characters = character_error_counts(hypotheses, references)
    assert characters.edits.tolist() == [edits(*pair) for pair in pairs]
    assert characters.reference_length.tolist() == [len(reference) for reference in references]
    expected = 100 * jiwer.wer(references, hypotheses)
    assert corpus_wer_percent(hypotheses, references) == pytest.approx(expected)
    expected = 100 * jiwer.cer(references, hypotheses)
    assert corpus_cer_percent(hypotheses, references) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "jiwer_rate", "percent"),
    [("", "a b", 2, 200), ("a\tb", "a b", 2, 0), ("a b", "a\tb", 1, 0), ([], [], 0, np.nan)],
)
def test_rates_of_jiwer_that_this_module_corrects(reference, hypothesis, jiwer_rate, percent):
    """jiwer returns a count for an empty reference, and splits words at spaces only.

    These numbers are the reason why only its counts are used (decision record 6).
    """
    assert jiwer.wer(reference, hypothesis) == jiwer_rate
    texts = (side if isinstance(side, list) else [side] for side in (hypothesis, reference))
    np.testing.assert_equal(corpus_wer_percent(*texts), percent)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "percent"),
    [("a b", "", 200), ("", "a b", 100), ("", "", 0), (" \t", "", 0), ("a b c", "a", 200)],
)
def test_case_14_empty_text_has_one_rule_for_sentence_and_corpus(hypothesis, reference, percent):
    assert sentence_wer_percent([hypothesis], [reference]) == [percent]
    assert corpus_wer_percent([hypothesis], [reference]) == percent


@pytest.mark.parametrize(
    ("hypothesis", "reference", "percent"),
    [
        ("a b", "", 300),
        ("", "ab", 100),
        (" ", "", 0),
        ("ab  cd", "ab\tcd", 0),
        ("abcd", "ab cd", 20),
    ],
)
def test_characters_of_empty_text_and_of_white_space(hypothesis, reference, percent):
    assert corpus_cer_percent([hypothesis], [reference]) == percent


def test_case_14_a_corpus_adds_counts_and_never_averages():
    hypotheses, references = ["a b", "x", ""], ["", "a b c", ""]
    counts = word_error_counts(hypotheses, references)
    assert counts.edits.tolist() == [2, 3, 0]
    assert counts.reference_length.tolist() == [0, 3, 0]
    assert corpus_wer_percent(hypotheses, references) == pytest.approx(100 * 5 / 3)


def test_tabs_and_runs_of_spaces_separate_words():
    assert sentence_wer_percent(["a\tb  c"], ["a b c"]) == [0]


def test_metrics_without_sentences_are_undefined():
    assert np.isnan(corpus_wer_percent([], []))
    assert np.isnan(corpus_cer_percent([], []))


def test_the_signature_says_that_spaces_count():
    assert cer_signature().startswith(
        "CER|characters:code-points|spaces:one|case:mixed|norm:NFC|edits:"
    )


def test_unequal_numbers_of_texts_are_rejected():
    with pytest.raises(DataError, match="hypotheses: 0 for 1 references"):
        corpus_wer_percent([], ["a"])

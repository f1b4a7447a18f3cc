"""Errors of sentences for prediction rejection are percentages."""

import pytest

from pipeline.quality.registry import QUALITIES


def test_errors_of_sentences_in_percent() -> None:
    texts = ["a b c d", "x"], ["a b c d", "a b"]
    assert QUALITIES["bleu"].sentence_error_percent(*texts).tolist() == pytest.approx([0, 100])
    assert QUALITIES["wer_percent"].sentence_error_percent(*texts).tolist() == [0, 100]
    assert QUALITIES["wer_percent"].sentence_error_percent(["a b c"], ["a"]).tolist() == [200]

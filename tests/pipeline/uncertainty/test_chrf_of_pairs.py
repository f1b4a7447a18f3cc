"""chrF between the texts of a sentence equals that of each pair of texts by sacrebleu."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from pipeline.quality.translation import corpus_chrf
from pipeline.uncertainty.chrf_of_pairs import mean_chrf_of_pairs

CHARACTERS = ["a", "b", "ä", "a\u0308", "你", "😀", " "]
TEXT = st.lists(st.sampled_from(CHARACTERS), max_size=9).map("".join)


def test_by_hand() -> None:
    """Of `ab` and `ac`, one of two characters matches and no pair of characters: P = R = 1/4."""
    offset = np.array([0, 2, 2, 3, 6])
    texts = ["ab", "a c", "one text", "same", "same", "other"]
    percent = mean_chrf_of_pairs(texts, offset)
    assert percent[0] == pytest.approx(25)
    assert np.isnan(percent[1:3]).all()
    to_other, from_other = corpus_chrf(["same"], ["other"]), corpus_chrf(["other"], ["same"])
    assert percent[3] == pytest.approx((100 + to_other + from_other) / 3)


@settings(deadline=None)
@given(sentences=st.lists(st.lists(TEXT, max_size=4), max_size=4))
def test_equals_the_chrf_of_each_pair(sentences: list[list[str]]) -> None:
    offset = np.cumsum([0, *map(len, sentences)])
    percent = mean_chrf_of_pairs([text for texts in sentences for text in texts], offset)
    for value, texts in zip(percent, sentences, strict=True):
        pairs = [corpus_chrf([a], [b]) for a, b in permutations(texts, 2)]
        assert value == pytest.approx(np.mean(pairs) if pairs else np.nan, nan_ok=True)
        assert not value < 0
        assert not value > 100 + 1e-9


def test_equals_sacrebleu() -> None:
    texts = ["The cat sat on the mat.", "A cat sat on a mat", "the dog"]
    scorer = CHRF()
    pairs = [scorer.sentence_score(a, [b]).score for a, b in permutations(texts, 2)]
    assert mean_chrf_of_pairs(texts, np.array([0, 3])) == pytest.approx([np.mean(pairs)])


def test_many_samples_with_few_texts_need_little_memory() -> None:
    """All pairs of 60,000 samples would need terabytes."""
    n = 30_000
    percent = mean_chrf_of_pairs(["ab"] * n + ["ac"] * n, np.array([0, 2 * n]))
    assert percent[0] == pytest.approx((100 * (n - 1) + 25 * n) / (2 * n - 1))


def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, offset = ["ab", "abc", "", "x", "xyz", "xz"], np.array([0, 2, 3, 6])
    expected = mean_chrf_of_pairs(texts, offset)
    monkeypatch.setattr("pipeline.uncertainty.chrf_of_pairs._BLOCK_VALUES", 1)
    np.testing.assert_array_equal(mean_chrf_of_pairs(texts, offset), expected)

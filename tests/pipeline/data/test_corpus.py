from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.corpus import Paragraph, align, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("See e.g. Word or z. B. Übung.", ["See e.g. Word or z. B. Übung."]),
        ("Version 7.4 is here. Ärger folgt.", ["Version 7.4 is here.", "Ärger folgt."]),
        ("no full stop", ["no full stop"]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.lists(st.sampled_from(["One.", "two", "Drei!", "“Quatre?”", "z.", "B.", "5"])))
def test_splitting_loses_nothing(words: list[str]) -> None:
    text = " ".join(words)
    assert " ".join(split_sentences(text)) == text


def test_alignment_keeps_paragraphs_with_equal_counts_and_counts_the_others() -> None:
    paragraphs = [
        Paragraph("a", {"en": ["A.", "B."], "de": ["X.", "Y."], "fr": ["V. W."]}),
        Paragraph("b", {"en": ["C."], "de": ["Z."], "fr": ["U."]}),
        Paragraph("c", {"en": ["D."], "fr": ["T."]}),
    ]
    counts: Counter[str] = Counter()
    pair = list(align(paragraphs, ["en", "de"], counts))
    assert [sentence.text for sentence in pair] == [
        {"en": "A.", "de": "X."},
        {"en": "B.", "de": "Y."},
        {"en": "C.", "de": "Z."},
    ]
    assert counts == {
        "paragraphs_read": 3,
        "paragraphs_with_unequal_sentence_counts": 1,
        "sentences": 3,
    }
    three_way = align(paragraphs, ["en", "de", "fr"], Counter())
    assert [sentence.page for sentence in three_way] == ["b"]

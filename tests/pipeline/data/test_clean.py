from __future__ import annotations

import pytest

from pipeline.data.clean import LengthRange, clean
from pipeline.data.corpus import AlignedSentence

LENGTH = LengthRange(3, 12)


def _sentence(en: str, de: str) -> AlignedSentence:
    return AlignedSentence("page", {"de": de, "en": en})


@pytest.mark.parametrize(
    ("rule", "en", "de"),
    [
        ("word_count", "Two words", "Das sind zwei"),
        ("word_count", "word " * 13, "Wort " * 13),
        ("letter_share", "a = 1 + 22 * 333 / 4444", "Das ist ein Satz"),
        ("markup_or_url", "See www.example.org for this", "Das ist ein Satz"),
        ("markup_or_url", "Put <b>bold</b> text here", "Das ist ein Satz"),
        (
            "length_ratio",
            "Three words here",
            "Das sind nun wirklich sehr viel mehr als bloß drei Wörter",
        ),
        ("untranslated", "Calc Office Template", "Calc office Template"),
    ],
)
def test_each_rule_drops_and_counts(rule: str, en: str, de: str) -> None:
    kept, counts = clean([_sentence(en, de)], LENGTH)
    assert kept == []
    assert counts[f"dropped_{rule}"] == 1
    assert sum(counts.values()) == 2  # one read, one dropped


def test_duplicates_go_by_the_english_side_and_the_first_stays() -> None:
    sentences = [
        _sentence("Open the door.", "Öffnen Sie die Tür."),
        _sentence("Open the Door.", "Machen Sie die Tür auf."),
    ]
    kept, counts = clean(sentences, LENGTH)
    assert kept == sentences[:1]
    assert (counts["read"], counts["dropped_duplicate"], counts["kept"]) == (2, 1, 1)


def test_a_dropped_sentence_is_no_reason_to_drop_its_like() -> None:
    kept, _ = clean(
        [
            _sentence("Open the door.", "Open the door."),
            _sentence("Open the door.", "Öffnen Sie die Tür."),
        ],
        LENGTH,
    )
    assert [sentence.text["de"] for sentence in kept] == ["Öffnen Sie die Tür."]


def test_length_limits_are_inclusive() -> None:
    _, counts = clean([_sentence("one two three", "eins zwei drei vier")], LengthRange(3, 3))
    assert counts["kept"] == 1

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from pipeline.data.text.cleaning import RULES, CleaningRules, learn_languages
from pipeline.data.text.cleaning import clean as clean_one_by_one
from pipeline.data.text.corpus import AlignedSentence

_ENGLISH = ("the house is there", "this is the house", "there is the garden")
_GERMAN = ("das Haus ist dort", "dies ist das Haus", "dort ist der Garten")
_PROFILE = learn_languages(
    [
        AlignedSentence("page", {"de": de, "en": en})
        for en, de in zip(_ENGLISH, _GERMAN, strict=True)
    ]
    * 10,
    ["de", "en"],
)
LENGTH = CleaningRules("en", 3, 12, _PROFILE)


def clean(
    sentences: list[AlignedSentence], rules: CleaningRules
) -> tuple[list[AlignedSentence], Counter[str]]:
    counts: Counter[str] = Counter()
    return list(clean_one_by_one(sentences, rules, counts)), counts


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
        ("other_language", "das Haus ist dort", "the garden is there now"),
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
    _, counts = clean(
        [_sentence("one two three", "eins zwei drei vier")], CleaningRules("en", 3, 3)
    )
    assert counts["kept"] == 1


def test_every_rule_has_a_count_even_where_nothing_was_read() -> None:
    _, counts = clean([], LENGTH)
    assert set(counts) == {"read", "kept", *(f"dropped_{rule}" for rule in RULES)}


def test_sentences_pass_one_at_a_time() -> None:
    read = 0

    def endless() -> Iterator[AlignedSentence]:
        nonlocal read
        while True:
            read += 1
            yield _sentence(f"Open the door of room {'x' * read}", f"Tür {'y' * read} nun öffnen")

    kept = clean_one_by_one(endless(), LENGTH, Counter())
    assert [next(kept).page for _ in range(100)] == ["page"] * 100
    assert read == 100

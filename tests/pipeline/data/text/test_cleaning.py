from __future__ import annotations

import tracemalloc
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.cleaning import (
    RULES,
    CleaningRules,
    NearDuplicates,
    SeenTexts,
    broken_rule,
    learn_profile,
    profile_of,
    warn_if_most_is_dropped,
)
from pipeline.data.text.cleaning import clean as clean_one_by_one
from pipeline.data.text.corpus import AlignedSentence, Corpus, Paragraph, align
from pipeline.data.text.debian_corpora import read_game_dialogue
from pipeline.run.settings import DataConfig

_ENGLISH = ("the house is there", "this is the house", "there is the garden")
_GERMAN = ("das Haus ist dort", "dies ist das Haus", "dort ist der Garten")
_PROFILE = profile_of(
    [
        AlignedSentence("page", {"de": de, "en": en})
        for en, de in zip(_ENGLISH, _GERMAN, strict=True)
    ]
    * 10,
    ["de", "en"],
)
LENGTH = CleaningRules("en", 3, 12, 0.6, 2.2, 3, _PROFILE)


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


def test_untranslated_pairs_are_kept_on_request_and_take_the_place_of_no_translation() -> None:
    untranslated = _sentence("the house is there", "The house is there")
    translated = _sentence("the house is there", "das Haus ist dort")
    pairs = [untranslated, translated, untranslated, translated]
    assert clean(pairs, LENGTH)[0] == [translated]
    kept, counts = clean(pairs, replace(LENGTH, keeps_untranslated=True))
    assert kept == [untranslated, translated]
    assert counts["dropped_duplicate"] == 2
    two_words = _sentence("the house", "the house")
    assert clean([two_words], replace(LENGTH, keeps_untranslated=True))[0] == []


_OPEN_DOOR = "The door of the house is open today."
_IN_OTHER_SCRIPTS = {
    "zh": "今天房子的门是开着的。",
    "ja": "今日は家のドアが開いています。",
    "th": "วันนี้ประตูบ้านเปิดอยู่",
    "lo": "ມື້ນີ້ປະຕູເຮືອນເປີດຢູ່",
    "km": "ទ្វារផ្ទះបើកនៅថ្ងៃនេះ។",
    "my": "ဒီနေ့အိမ်တံခါးပွင့်နေတယ်။",
    "bo": "དེ་རིང་ཁང་པའི་སྒོ་ཕྱེ་ཡོད།",
    "hi": "आज घर का दरवाज़ा खुला है।",
    "bn": "আজ বাড়ির দরজা খোলা আছে।",
    "ta": "இன்று வீட்டின் கதவு திறந்திருக்கிறது.",
    "vi": unicodedata.normalize("NFD", "Hôm nay cửa nhà để mở đấy."),
}


@pytest.mark.parametrize("language", _IN_OTHER_SCRIPTS)
def test_ordinary_sentence_of_any_script_is_kept(language: str) -> None:
    text = {"en": _OPEN_DOOR, language: _IN_OTHER_SCRIPTS[language]}
    _, counts = clean([AlignedSentence("page", text)], LENGTH)
    assert (counts["kept"], +counts) == (1, {"read": 1, "kept": 1})
    # The limits of the number of words also hold if the other side is the pivot.
    _, counts = clean([AlignedSentence("page", text)], replace(LENGTH, pivot=language))
    assert counts["kept"] == 1
    # A sentence of three times the length is too long for its translation.
    longer = {"en": _OPEN_DOOR * 4, language: _IN_OTHER_SCRIPTS[language]}
    assert broken_rule(longer, replace(LENGTH, max_words=40)) == "length_ratio"


def test_limits_are_settings() -> None:
    few_letters = _sentence("a = 1 + 22 * 333 / 4444", "Das ist ein Satz")
    assert clean([few_letters], replace(LENGTH, min_letter_share=0.04))[1]["kept"] == 1
    long = _sentence(
        "Three words here", "Das sind nun wirklich sehr viel mehr als bloß drei Wörter"
    )
    for looser in ({"max_length_ratio": 4.0}, {"length_allowance_words": 8}):
        assert clean([long], replace(LENGTH, **looser))[1]["kept"] == 1  # type: ignore[arg-type]


def _corpus(sentences: list[AlignedSentence]) -> Corpus:
    def paragraphs() -> Iterator[Paragraph]:
        for page, text in sentences:
            yield Paragraph(page, {language: [side] for language, side in text.items()})

    return Corpus("mine", "", "", {}, frozenset(("de", "en")), paragraphs)


def test_loss_of_more_than_half_of_a_corpus_is_a_warning_with_rule_count_and_examples(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = [_sentence(f"Open door {name} now", f"Tür {name} nun öffnen") for name in "abcd"]
    long = [_sentence(f"word {number} " * 7, f"Wort {number} " * 7) for number in range(4)]
    sentences = [*kept, *long, _sentence("Two words", "Zwei Wörter"), _sentence("7 8 9", "7 8")]
    for rows, is_warned in ((kept + long, False), (sentences, True)):
        _, counts = clean(rows, LENGTH)
        warn_if_most_is_dropped(_corpus(rows), ["de", "en"], LENGTH, counts)
        assert bool(caplog.messages) == is_warned
    (warning,) = caplog.messages
    assert warning.startswith(
        "mine: 6 of 10 sentences were dropped; the rule word_count dropped 5 of 10 sentences "
        "(words of the pivot side outside data.min_words=3 to data.max_words=12). Examples: "
    )
    assert [f"word {number} " in warning for number in range(4)] == [True, True, True, False]


def test_units_that_lack_a_language_are_part_of_the_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = [_sentence(f"Open door {name} now", f"Tür {name} nun öffnen") for name in "abcd"]
    lacking = [AlignedSentence("page", {"de": f"Satz {number}"}) for number in range(4)]
    short = [_sentence("Two words", "Zwei Wörter")]
    for rows, is_warned in ((kept + lacking, False), (kept + lacking + short, True)):
        corpus = _corpus(rows)
        counts: Counter[str] = Counter()
        list(clean_one_by_one(align(corpus.paragraphs(), ["de", "en"], counts), LENGTH, counts))
        warn_if_most_is_dropped(corpus, ["de", "en"], LENGTH, counts)
        assert bool(caplog.messages) == is_warned
    assert caplog.messages == [
        "mine: 5 of 9 sentences were dropped; the rule all_languages dropped 4 of 9 sentences "
        "(units or paragraphs that lack text in one of the languages). Examples: "
        "'de: Satz 0 / en: (no text)'; 'de: Satz 1 / en: (no text)'; 'de: Satz 2 / en: (no text)'"
    ]


def test_duplicates_of_the_english_side_are_dropped_except_the_first() -> None:
    sentences = [
        _sentence("Open the door.", "Öffnen Sie die Tür."),
        _sentence("Open the Door.", "Machen Sie die Tür auf."),
    ]
    kept, counts = clean(sentences, LENGTH)
    assert kept == sentences[:1]
    assert (counts["read"], counts["dropped_duplicate"], counts["kept"]) == (2, 1, 1)


def test_dropped_sentence_does_not_count_as_a_duplicate() -> None:
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
        [_sentence("one two three", "eins zwei drei vier")], replace(LENGTH, max_words=3)
    )
    assert counts["kept"] == 1


def test_every_rule_has_a_count_even_for_empty_input() -> None:
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


@given(st.lists(st.text(max_size=3)))
def test_text_is_new_only_once(texts: list[str]) -> None:
    seen, known = SeenTexts(), set[str]()
    for text in texts:
        assert seen.add(text) == (text not in known)
        known.add(text)
    assert len(seen) == len(known)


@pytest.mark.slow
def test_memory_is_a_few_hash_sizes_per_text() -> None:
    tracemalloc.start()
    seen = SeenTexts()
    assert all(seen.add(f"text {number}") for number in range(20_000))
    assert not any(seen.add(f"text {number}") for number in range(20_000))
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes <= 4 * 8 * 20_000


SENTENCES = [
    AlignedSentence(
        "page",
        {
            "de": f"Das ist die {number} und der Rest : ich",
            "en": f"This is the {number} and the rest : I",
            "fr": f"Voici la {number} et le reste : moi",
        },
    )
    for number in range(20)
]
PROFILE = profile_of(SENTENCES, ["de", "en", "fr"])


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_side_is_recognised_as_its_own_language_only(language: str) -> None:
    for own, text in SENTENCES[0].text.items():
        assert PROFILE.is_other_language(text.lower().split(), language) == (own != language)


@pytest.mark.parametrize("text", ["", "Zyx Wvu", "7 8 : 9 !", "the", "der"])
def test_short_text_is_not_decided(text: str) -> None:
    assert not any(
        PROFILE.is_other_language(text.lower().split(), language) for language in ("de", "en", "fr")
    )


def test_unknown_language_and_a_single_language_are_not_decided() -> None:
    assert not PROFILE.is_other_language(["this", "is", "the", "rest"], "it")
    alone = profile_of(SENTENCES, ["en"])
    assert not alone.is_other_language(["das", "ist", "die"], "en")


def test_few_sides_in_a_wrong_language_are_recognised() -> None:
    english = SENTENCES[0].text["en"]
    words = english.lower().split()
    wrong = AlignedSentence("page", {"de": english, "en": english, "fr": english})
    profile = profile_of([*SENTENCES, wrong], ["de", "en", "fr"])
    assert profile.is_other_language(words, "de")
    assert not profile.is_other_language(words, "en")


def test_profile_of_a_corpus_covers_all_its_sides(help_packages: Path, tmp_path: Path) -> None:
    data = DataConfig(downloads=str(tmp_path), packages=str(help_packages), pin=False)
    profile = learn_profile(read_game_dialogue(data, ["de", "en", "fr"]))
    assert profile.is_other_language(["so", "why", "is", "it"], "de")
    assert not profile.is_other_language(["warum", "schwimmt", "es", "denn"], "de")


def near_duplicates(texts: list[str], held_out: list[str], jaccard: float) -> list[bool]:
    index = NearDuplicates(held_out, jaccard)
    return [index.has_near(text) for text in texts]


_TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=9).map(" ".join), max_size=8)


def test_overlap_ignores_case_and_punctuation() -> None:
    texts = ["The red door opens here!", "A red door opens here", "Something else"]
    assert near_duplicates(texts, ["the red door opens here."], 0.8) == [True, False, False]
    assert near_duplicates(texts, ["the red door opens here."], 0.6) == [True, True, False]


def test_overlap_equal_to_the_threshold_counts() -> None:
    assert near_duplicates(["a b c d"], ["a b c d e"], 0.8) == [True]


@given(_TEXTS, _TEXTS, st.sampled_from([0.1, 0.25, 0.5, 2 / 3, 0.8, 1.0]))
def test_index_agrees_with_comparing_every_pair(
    texts: list[str], held_out: list[str], jaccard: float
) -> None:
    def near(text: str) -> bool:
        words = set(text.split())
        held_out_words = [set(sentence.split()) for sentence in held_out]
        return any(
            words & known and len(words & known) / len(words | known) >= jaccard
            for known in held_out_words
        )

    assert near_duplicates(texts, held_out, jaccard) == [near(text) for text in texts]

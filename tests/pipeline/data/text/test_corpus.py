from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.corpus import (
    AlignedSentence,
    Paragraph,
    SpooledSentences,
    align,
    hold_out,
    split_sentences,
)


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
def test_text_is_split_into_sentences(text: str, sentences: list[str]) -> None:
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
        "paragraphs_without_all_languages": 1,
        "paragraphs_with_unequal_sentence_counts": 0,
        "sentences": 3,
    }
    counts.clear()
    three_way = align(paragraphs, ["en", "de", "fr"], counts)
    assert [sentence.page for sentence in three_way] == ["b"]
    assert counts == {
        "paragraphs_read": 3,
        "paragraphs_without_all_languages": 1,
        "paragraphs_with_unequal_sentence_counts": 1,
        "sentences": 1,
    }


SENTENCES = [
    AlignedSentence(f"page{number // 4}", {"en": f"sentence {number}"}) for number in range(80)
]


def test_sets_have_their_size_and_share_no_page() -> None:
    held = hold_out(SENTENCES, 10, 7, None, seed=0)
    assert (len(held.test), len(held.dev)) == (10, 7)
    test_pages = {sentence.page for sentence in held.test}
    dev_pages = {sentence.page for sentence in held.dev}
    assert not test_pages & dev_pages
    assert held.pages == test_pages | dev_pages


def test_same_seed_holds_out_the_same_pages_in_any_order() -> None:
    pages = hold_out(SENTENCES, 10, 7, None, seed=0).pages
    assert hold_out(SENTENCES[::-1], 10, 7, None, seed=0).pages == pages
    assert hold_out(SENTENCES, 10, 7, None, seed=1).pages != pages


def test_limit_per_page_spreads_a_set_over_more_pages_which_are_held_out_whole() -> None:
    unlimited = hold_out(SENTENCES, 12, 8, None, seed=0)
    held = hold_out(SENTENCES, 12, 8, 2, seed=0)
    assert (len(held.test), len(held.dev)) == (12, 8)
    assert set(Counter(sentence.page for sentence in held.test + held.dev).values()) == {2}
    assert (len(unlimited.pages), len(held.pages)) == (5, 10)
    assert unlimited.pages < held.pages
    assert (unlimited.n_over_page_limit, held.n_over_page_limit) == (0, 20)


def test_choice_within_a_page_is_seeded_and_keeps_the_order_of_the_text() -> None:
    held = hold_out(SENTENCES, 12, 8, 2, seed=0)
    positions = [SENTENCES.index(sentence) for sentence in held.test]
    pairs = list(zip(positions[::2], positions[1::2], strict=True))
    assert all(first < second for first, second in pairs)
    assert {position % 4 for position in positions} == {0, 1, 2, 3}  # not always the first two
    reverse = hold_out(SENTENCES[::-1], 12, 8, 2, seed=0)
    assert sorted(map(SENTENCES.index, reverse.test)) == sorted(positions)
    assert held == hold_out(SENTENCES, 12, 8, 2, seed=0) != hold_out(SENTENCES, 12, 8, 2, seed=1)


@pytest.mark.parametrize("limit", [None, 2])
def test_document_whose_lines_are_not_adjacent_is_held_out_as_one(limit: int | None) -> None:
    scattered = [sentence for first in range(4) for sentence in SENTENCES[first::4]]
    assert hold_out(scattered, 10, 7, limit, seed=0) == hold_out(SENTENCES, 10, 7, limit, seed=0)


def test_small_corpus_gives_smaller_sets() -> None:
    held = hold_out(SENTENCES[:8], 5, 5, None, seed=0)
    assert (len(held.test), len(held.dev)) == (5, 0)


def test_memory_holds_few_pages_of_a_corpus_of_any_length() -> None:
    alive: set[int] = set()
    most = 0

    class Page(str):
        def __del__(self) -> None:
            alive.discard(id(self))

    def corpus() -> Iterator[AlignedSentence]:
        nonlocal most
        for number in range(20_000):
            page = Page(f"page{number}")
            alive.add(id(page))
            most = max(most, len(alive))
            yield AlignedSentence(page, {"en": "a sentence"})

    held = hold_out(corpus(), 20, 10, None, seed=0)
    assert (len(held.test), len(held.dev)) == (20, 10)
    assert most < 50


def test_empty_corpus_holds_out_no_page() -> None:
    held = hold_out(SENTENCES, 0, 0, None, seed=0)
    assert (held.test, held.dev, held.pages) == ([], [], frozenset())


def _sentences(n_sentence: int) -> list[AlignedSentence]:
    return [
        AlignedSentence(f"p{number}", {"de": f"Satz\u2028{number}", "en": f"sentence\t{number}"})
        for number in range(n_sentence)
    ]


def test_stored_sentences_can_be_read_repeatedly(tmp_path: Path) -> None:
    spool = SpooledSentences(tmp_path / "s", ["de", "en"])
    spool.write(_sentences(5))
    assert list(spool) == list(spool) == _sentences(5)
    assert len(spool) == 5


def test_choice_is_seeded_ordered_and_limited_by_the_corpus(tmp_path: Path) -> None:
    spool = SpooledSentences(tmp_path / "s", ["de", "en"])
    chosen = []
    for seed in (0, 0, 1):
        spool.write(_sentences(50))
        spool.choose(10, seed)
        chosen.append([sentence.page for sentence in spool])
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(chosen[0]) == len(spool) == 10
    assert chosen[0] == sorted(chosen[0], key=lambda page: int(page[1:]))
    spool.write(_sentences(5))
    spool.choose(10, 0)
    assert len(list(spool)) == len(spool) == 5


@pytest.mark.slow
def test_generator_of_any_length_needs_little_memory(tmp_path: Path) -> None:
    spool = SpooledSentences(tmp_path / "s", ["de", "en"])
    sentence = AlignedSentence("p", {"de": "Satz " * 20, "en": "sentence " * 20})
    tracemalloc.start()
    spool.write(sentence for _ in range(20_000))
    assert sum(1 for _ in spool) == 20_000
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < (tmp_path / "s").stat().st_size / 20

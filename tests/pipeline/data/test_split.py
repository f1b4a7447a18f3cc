from __future__ import annotations

from collections.abc import Iterator

from pipeline.data.text.corpus import AlignedSentence, hold_out

SENTENCES = [
    AlignedSentence(f"page{number // 4}", {"en": f"sentence {number}"}) for number in range(80)
]


def test_sets_have_their_size_and_share_no_page() -> None:
    held = hold_out(SENTENCES, test_sentences=10, dev_sentences=7, seed=0)
    assert (len(held.test), len(held.dev)) == (10, 7)
    test_pages = {sentence.page for sentence in held.test}
    dev_pages = {sentence.page for sentence in held.dev}
    assert not test_pages & dev_pages
    assert held.pages == test_pages | dev_pages


def test_same_seed_same_pages_whatever_the_order_of_the_corpus() -> None:
    pages = hold_out(SENTENCES, 10, 7, seed=0).pages
    assert hold_out(SENTENCES[::-1], 10, 7, seed=0).pages == pages
    assert hold_out(SENTENCES, 10, 7, seed=1).pages != pages


def test_too_small_a_corpus_gives_short_sets() -> None:
    held = hold_out(SENTENCES[:8], test_sentences=5, dev_sentences=5, seed=0)
    assert (len(held.test), len(held.dev)) == (5, 0)


def test_few_pages_are_in_memory_whatever_the_length_of_the_corpus() -> None:
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

    held = hold_out(corpus(), test_sentences=20, dev_sentences=10, seed=0)
    assert (len(held.test), len(held.dev)) == (20, 10)
    assert most < 50


def test_no_page_is_held_out_of_nothing() -> None:
    held = hold_out(SENTENCES, test_sentences=0, dev_sentences=0, seed=0)
    assert (held.test, held.dev, held.pages) == ([], [], frozenset())

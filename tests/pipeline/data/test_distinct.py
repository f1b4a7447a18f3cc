from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.cleaning import SeenTexts


@given(st.lists(st.text(max_size=3)))
def test_a_text_is_new_once(texts: list[str]) -> None:
    seen, known = SeenTexts(), set[str]()
    for text in texts:
        assert seen.add(text) == (text not in known)
        known.add(text)
    assert len(seen) == len(known)


def test_memory_is_a_few_hash_sizes_a_text() -> None:
    tracemalloc.start()
    seen = SeenTexts()
    assert all(seen.add(f"text {number}") for number in range(20_000))
    assert not any(seen.add(f"text {number}") for number in range(20_000))
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes <= 4 * 8 * 20_000

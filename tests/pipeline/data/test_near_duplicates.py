from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.cleaning import HeldOutIndex


def near_duplicates(texts: list[str], held_out: list[str], jaccard: float) -> list[bool]:
    index = HeldOutIndex(held_out, jaccard)
    return [index.is_near(text) for text in texts]


_TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=9).map(" ".join), max_size=8)


def test_overlap_is_of_lower_cased_words_without_punctuation() -> None:
    texts = ["The red door opens here!", "A red door opens here", "Something else"]
    assert near_duplicates(texts, ["the red door opens here."], 0.8) == [True, False, False]
    assert near_duplicates(texts, ["the red door opens here."], 0.6) == [True, True, False]


def test_threshold_itself_counts() -> None:
    assert near_duplicates(["a b c d"], ["a b c d e"], 0.8) == [True]


@given(_TEXTS, _TEXTS, st.sampled_from([0.1, 0.25, 0.5, 2 / 3, 0.8, 1.0]))
def test_index_finds_what_comparing_every_pair_finds(
    texts: list[str], held_out: list[str], jaccard: float
) -> None:
    def near(text: str) -> bool:
        words = set(text.split())
        others = [set(other.split()) for other in held_out]
        return any(
            words & other and len(words & other) / len(words | other) >= jaccard for other in others
        )

    assert near_duplicates(texts, held_out, jaccard) == [near(text) for text in texts]

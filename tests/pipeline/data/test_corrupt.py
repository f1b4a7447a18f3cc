from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.corrupt import permute

_PIECES = st.lists(st.sampled_from(["▁a", "▁b", "c", "d", ",", ".", "▁?"]), max_size=12)


@given(_PIECES, st.integers(0, 5), st.integers(0, 5))
def test_permutation(pieces: list[str], seed: int, sentence: int) -> None:
    permuted = permute(pieces, seed, sentence)
    assert permute(pieces, seed, sentence) == permuted
    end = len(pieces)
    while end and pieces[end - 1] in (".", "▁?"):
        end -= 1
    if permuted is None:
        assert len(set(pieces[:end])) < 2
        return
    assert permuted != pieces
    assert Counter(permuted) == Counter(pieces)
    assert permuted[end:] == pieces[end:]


def test_order_is_the_same_on_every_machine() -> None:
    pieces = ["▁Open", "▁the", "▁red", "▁door", "."]
    assert permute(pieces, 0, 0) == ["▁the", "▁door", "▁red", "▁Open", "."]


def test_seed_and_sentence_change_the_order() -> None:
    pieces = [f"▁{number}" for number in range(20)]
    orders = {tuple(permute(pieces, *key) or ()) for key in ((0, 0), (1, 0), (0, 1))}
    assert len(orders) == 3


def test_sentence_without_another_order_has_none() -> None:
    assert permute(["▁no", "▁no", "."], 0, 0) is None
    assert permute(["▁one", "."], 0, 0) is None
    assert permute([], 0, 0) is None

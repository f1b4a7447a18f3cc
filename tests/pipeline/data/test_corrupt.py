from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.test_sets import cut_short, misspell, permute

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


@given(st.text(alphabet="ab 1.é", max_size=30), st.integers(0, 3), st.integers(0, 3))
def test_typing_errors(text: str, seed: int, sentence: int) -> None:
    misspelt = misspell(text, seed, sentence)
    assert misspell(text, seed, sentence) == misspelt
    if not any(character.isalpha() for character in text):
        assert misspelt is None
        return
    assert misspelt is not None
    assert misspelt != text
    assert misspelt.strip()
    others = [[one for one in each if not one.isalpha()] for each in (text, misspelt)]
    assert others[0] == others[1]


def test_one_letter_in_ten_has_a_typing_error() -> None:
    text = "the quick brown fox jumps over the lazy dog and on and on"
    assert misspell(text, 0, 0) == "the qucik brown fo jumps over the laazy odg and on and on"
    assert len({misspell(text, *key) for key in ((0, 0), (1, 0), (0, 1))}) == 3


@given(st.lists(st.sampled_from(["a", "bc", "d."]), max_size=12), st.integers(0, 3))
def test_cut_keeps_the_beginning(words: list[str], seed: int) -> None:
    cut = cut_short(" ".join(words), seed, 0)
    assert cut == cut_short(" ".join(words), seed, 0)
    if len(words) < 2:
        assert cut is None
        return
    assert cut is not None
    kept = cut.split()
    assert kept == words[: len(kept)]
    assert 1 <= len(kept) < len(words)
    assert round(0.25 * len(words)) <= len(kept) <= max(1, round(0.75 * len(words)))

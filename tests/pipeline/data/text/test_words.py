from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.text.words import count_letter_characters, count_words


@pytest.mark.parametrize(
    ("text", "n_word"),
    [
        ("", 0),
        ("one - two  three.", 4),  # white space alone decides in scripts that have it
        ("Đây là một câu.", 4),
        ("한국어는 띄어쓰기를 한다", 3),
        ("今天房子的门是开着的。", 5),  # ten letters, two per word
        ("今日は家のドアが開いています。", 7),
        ("用 LibreOffice 7.4 打开文件。", 4),  # five letters, a name and a number
        ("วันนี้ประตูบ้านเปิดอยู่", 5),  # 14 letters without their marks, three per word
        ("དེ་རིང་ཁང་པའི་སྒོ་ཕྱེ་ཡོད།", 4),
    ],
)
def test_words_are_counted_by_the_characters_of_the_text(text: str, n_word: int) -> None:
    assert count_words(text) == n_word


@given(st.text(st.characters(max_codepoint=0xDFF)))
def test_words_of_scripts_with_spaces_are_split_at_white_space(text: str) -> None:
    assert count_words(text) == len(text.split())


@pytest.mark.parametrize("text", ["हिन्दी", "বাংলা", "தமிழ்", "မြန်မာ", "วันนี้", "ខ្មែរ", "می‌خواهم"])
def test_marks_and_joiners_belong_to_their_letter(text: str) -> None:
    assert count_letter_characters(text) == len(text) > sum(map(str.isalpha, text))


def test_mark_without_a_letter_is_no_letter() -> None:
    assert count_letter_characters("1\u0301 \u0301-\u200d") == 0
    assert count_letter_characters(unicodedata.normalize("NFD", "Việt 1")) == 6

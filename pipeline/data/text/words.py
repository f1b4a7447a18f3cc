"""The number of words and letters of a text, in scripts with and without spaces between words."""

from __future__ import annotations

import re
import unicodedata

# Blocks of the scripts without spaces between words: ideographs and kana (line breaking classes ID
# and CJ of Unicode), and the scripts of South East Asia (class SA) and Tibet, where a space ends a
# phrase (https://www.unicode.org/reports/tr14/). Punctuation and marks belong to their block.
_EAST_ASIAN = (
    r"\u2e80-\u2fdf\u3000-\u312f\u3190-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff\uff61-\uff9f"
    r"\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_SOUTH_EAST_ASIAN = (
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua980-\ua9ff\uaa60-\uaadf"
)
# Letters, without marks, that correspond to one English word. The medians in LibreOffice's help are
# 1.4 in Chinese, 2.1 in Japanese, 2.9 in Khmer and 3.6 in Dzongkha.
_LETTERS_PER_WORD = (
    (re.compile(f"[{_EAST_ASIAN}]+"), 2),
    (re.compile(f"[{_SOUTH_EAST_ASIAN}]+"), 3),
)
# Finds a character of such a script in a text. Bound here, since cleaning calls it for every text.
find_unspaced = re.compile(f"[{_EAST_ASIAN}{_SOUTH_EAST_ASIAN}]").search
_JOINERS = "\u200c\u200d"  # stand between the letters of a word, in Persian or Hindi


def count_words(text: str) -> int:
    """Count the words of a text, which are separated by white space.

    In scripts without spaces between words, letters are counted instead, and as many as correspond
    to an English word count as one.
    """
    if not find_unspaced(text):
        return len(text.split())
    n_word = 0.0
    for pattern, letters_per_word in _LETTERS_PER_WORD:
        runs = "".join(pattern.findall(text))
        n_word += sum(map(str.isalpha, runs)) / letters_per_word
        text = pattern.sub(" ", text)
    # What is left are words of other scripts, numbers, and punctuation, which is not a word here.
    n_word += sum(any(map(str.isalnum, piece)) for piece in text.split())
    return round(n_word)


def count_letter_characters(text: str) -> int:
    """Count the letters of a text and their parts: the marks and joiners that follow a letter."""
    n_letter = 0
    is_in_letter = False
    for character in text:
        is_part = character in _JOINERS or unicodedata.category(character).startswith("M")
        is_in_letter = character.isalpha() or (is_in_letter and is_part)
        n_letter += is_in_letter
    return n_letter

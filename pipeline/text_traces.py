"""Traces that preprocessing leaves in text: subword markers, split punctuation, Moses' escapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Written by Moses' tokenizer.perl and escape-special-chars.perl; the ampersand must come last.
_ESCAPES = {
    "&#124;": "|",
    "&#91;": "[",
    "&#93;": "]",
    "&lt;": "<",
    "&gt;": ">",
    "&apos;": "'",
    "&quot;": '"',
    "&amp;": "&",
}
_CONTINUED = re.compile(r"\S@@(?:\s|$)")  # of subword-nmt: more of the word follows
# Every match of the pattern contains one of these, and they are quick to look for.
_SPLIT_SIGNS = (" .", " ,", " 。", " ，", " 、")  # noqa: RUF001 - CJK punctuation
_SPLIT_PUNCTUATION = re.compile(rf"\S(?:{'|'.join(map(re.escape, _SPLIT_SIGNS))})(?=\s|$)")
# In LibreOffice's help in nine languages, at most 0.3 % of the sentences have a split full stop or
# comma. Tokenised text has one in nearly every sentence.
_MIN_SHARE = 0.05


def unescaped(text: str) -> str:
    """Undo the escapes of Moses' tokeniser, such as `&apos;`."""
    if "&" in text:
        for escape, character in _ESCAPES.items():
            text = text.replace(escape, character)
    return text


@dataclass
class Traces:
    """Numbers of texts: all, and those with each trace of preprocessing."""

    texts: int = 0
    subwords: int = 0
    tokenised: int = 0
    escaped: int = 0

    def add(self, text: str) -> None:
        """Count one more text."""
        self.texts += 1
        self.subwords += ("@@" in text and _CONTINUED.search(text) is not None) or "▁" in text
        for sign in _SPLIT_SIGNS:
            if sign in text:
                self.tokenised += _SPLIT_PUNCTUATION.search(text) is not None
                break
        if "&" in text:
            self.escaped += unescaped(text) != text

    def counts(self) -> dict[str, int]:
        """Return trace -> number of texts that have it, without zeros."""
        named = {"subwords": self.subwords, "tokenised": self.tokenised, "escaped": self.escaped}
        return {name: number for name, number in named.items() if number}

    def warnings(self, name: str) -> Iterator[str]:
        """Yield a sentence for each trace that at least one text in twenty has, with its count."""
        if self.subwords >= max(1, _MIN_SHARE * self.texts):
            yield (
                f"{name}: {self.subwords} of {self.texts} texts have subword markers (@@ or ▁). "
                f"Join the subwords to words."
            )
        if self.tokenised >= max(1, _MIN_SHARE * self.texts):
            yield (
                f"{name}: {self.tokenised} of {self.texts} texts have a space before a full stop "
                f"or comma, as tokenised text has. Detokenise it."
            )
        if self.escaped >= max(1, _MIN_SHARE * self.texts):
            yield (
                f"{name}: {self.escaped} of {self.texts} texts have escapes of Moses' tokeniser, "
                f"such as &apos;. Replace them by their characters."
            )


def traces_of(texts: Iterable[str]) -> Traces:
    """Count the traces of preprocessing in texts."""
    traces = Traces()
    for text in texts:
        traces.add(text)
    return traces

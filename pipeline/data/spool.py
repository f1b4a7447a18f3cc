"""Sentences on disk, so that a corpus of any size passes through little memory."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.data.corpus import AlignedSentence


class SpooledSentences:
    """Sentences in a file of their own, read as often as needed."""

    def __init__(self, path: Path, languages: list[str]) -> None:
        self._path = path
        self._chosen: list[int] | None = None
        self._count = 0
        self.languages = languages

    def __len__(self) -> int:
        return self._count if self._chosen is None else len(self._chosen)

    def __iter__(self) -> Iterator[AlignedSentence]:
        chosen = None if self._chosen is None else iter(self._chosen)
        following = None if chosen is None else next(chosen, None)
        with self._path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file):
                if chosen is not None:
                    if number != following:
                        continue
                    following = next(chosen, None)
                page, *sides = json.loads(line)
                yield AlignedSentence(page, dict(zip(self.languages, sides, strict=True)))

    def write(self, sentences: Iterable[AlignedSentence]) -> None:
        """Put sentences in the file, in place of what it held."""
        self._count, self._chosen = 0, None
        with self._path.open("w", encoding="utf-8", newline="\n") as file:
            for sentence in sentences:
                row = [sentence.page, *(sentence.text[name] for name in self.languages)]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._count += 1

    def choose(self, most: int, seed: int) -> None:
        """Keep at most this many, chosen by the seed, in their order."""
        if most < len(self):
            self._chosen = sorted(random.Random(seed).sample(range(self._count), most))

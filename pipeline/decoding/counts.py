"""What decode stores hold, in counts and words, for logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pipeline.decoding.plan import Part
from pipeline.store import Flag, open_own_store

_FLAGS = {
    Flag.TOO_LONG: "too long",
    Flag.EMPTY_SOURCE: "with an empty source",
    Flag.NO_HYPOTHESIS: "without a hypothesis",
    Flag.NO_FINISHED_HYPOTHESIS: "without a finished hypothesis",
}


@dataclass(frozen=True)
class Counts:
    """Numbers of sentences and hypotheses, and of sentences by what is special about them."""

    sentences: int
    hypotheses: int
    flagged: Counter[str]

    @classmethod
    def of(cls, path: Path) -> Self:
        """Counts of a store."""
        with open_own_store(path) as store:
            flags = store.flag.copy()
            # A sentence that cannot be decoded has no hypothesis, which need not be said.
            undecoded = (flags & (Flag.TOO_LONG | Flag.EMPTY_SOURCE)).astype(bool)
            flags[undecoded] &= 255 - Flag.NO_HYPOTHESIS
            flagged = {
                words: int((flags & flag).astype(bool).sum()) for flag, words in _FLAGS.items()
            }
            return cls(store.n_sentence, store.n_hypothesis, Counter(flagged))

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.sentences + other.sentences,
            self.hypotheses + other.hypotheses,
            self.flagged + other.flagged,
        )

    def __str__(self) -> str:
        flagged = ", ".join(f"{count} {words}" for words, count in self.flagged.items() if count)
        return (
            f"{self.sentences} sentences{f' ({flagged})' if flagged else ''} with "
            f"{self.hypotheses} hypotheses"
        )


def lines_of_test_sets(folder: Path, plan: Sequence[Part], decoded: Sequence[str]) -> list[str]:
    """Return a line for each test set of which parts were decoded: its stores and their sums."""
    lines = []
    for test_set in dict.fromkeys(part.test_set for part in plan if part.name in decoded):
        names = [part.name for part in plan if part.test_set == test_set and part.name in decoded]
        first, *others = [Counts.of(folder / name / "store.h5") for name in names]
        stores = "1 store" if not others else f"{len(names)} stores, together"
        lines.append(f"{test_set}: {stores}: {sum(others, first)}")
    return lines

"""Hypotheses of one sentence that have the same text but other tokens, such as other subwords.

P(y) is a probability of token sequences, so that by default such hypotheses are different. Merged,
they are one hypothesis: the event that the output has this text.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.posterior import Float64
from pipeline.store import Store
from pipeline.uncertainty.hypothesis import HypothesisSums
from pipeline.uncertainty.weighting import (
    Selection,
    importance,
    log_weighted_mean,
    selection_of,
    weighted_mean,
)


@dataclass(frozen=True)
class EqualTexts:
    """Which hypotheses share their text with a better one of their sentence.

    first [hypothesis]: row of the best hypothesis of the sentence with the same text, its own if
    there is no better one. repeated [hypothesis]: whether a better one has the same tokens too.
    """

    first: NDArray[np.int64]
    repeated: NDArray[np.bool_]

    @property
    def surplus(self) -> NDArray[np.int64]:
        """Rows of the hypotheses that share their text with a better one."""
        return np.flatnonzero(self.first != np.arange(len(self.first)))


def compare_texts(store: Store) -> EqualTexts:
    """Compare the hypotheses of each sentence."""
    texts = store.read("/hypothesis/text")
    equal = EqualTexts(np.arange(store.n_hypothesis), np.zeros(store.n_hypothesis, dtype=bool))
    for start, stop in pairwise(store.hypothesis_offset.tolist()):
        row_of_text: dict[str, int] = {}
        for row in range(start, stop):
            equal.first[row] = row_of_text.setdefault(texts[row], row)
    seen: dict[int, set[bytes]] = {}
    for row in equal.surplus.tolist():
        first = int(equal.first[row])
        earlier = seen.setdefault(first, {_tokens(store, first)})
        tokens = _tokens(store, row)
        equal.repeated[row] = tokens in earlier
        earlier.add(tokens)
    return equal


def _tokens(store: Store, row: int) -> bytes:
    start, stop = store.token_offset[row : row + 2].tolist()
    return bytes(store.read("/token/id", start, stop).tobytes())


@dataclass(frozen=True)
class MergedTexts:
    """The selected hypotheses of each sentence after those with equal texts were merged.

    A merged hypothesis is the union of its token sequences, of which each counts once. selection:
    all merged hypotheses; within: the token sequences of each; log_share [selected]: ln of the
    probability of a token sequence given its text.
    """

    selection: Selection
    within: Selection
    log_share: Float64

    def mean(self, values: Float64) -> Float64:
        """Return the mean over the token sequences of each text, [hypothesis] to [merged]."""
        return weighted_mean(self.log_share, values[self.within.hypothesis], self.within)

    def total(self, logprob: Float64) -> Float64:
        """Return the ln of the sum of probabilities of each text, [hypothesis] to [merged]."""
        of_sequences = logprob[self.within.hypothesis]
        return log_weighted_mean(np.zeros(len(of_sequences)), of_sequences, self.within)

    def sums(self, sums: HypothesisSums) -> HypothesisSums:
        """Return the sums of the merged hypotheses.

        Probabilities are added under every member and both posteriors. Lengths and quantities of
        single tokens are averaged.
        """
        return HypothesisSums(
            length=self.mean(sums.length),
            logprob_member=np.column_stack([self.total(m) for m in sums.logprob_member.T]),
            logprob={name: self.total(logprob) for name, logprob in sums.logprob.items()},
            chain={name: self.mean(values) for name, values in sums.chain.items()},
            maximum={name: self.mean(values) for name, values in sums.maximum.items()},
            deviation=self.mean(sums.deviation),
        )


def merge(logprob: Float64, selection: Selection, texts: EqualTexts) -> MergedTexts:
    """Merge the selected hypotheses of each sentence that have equal texts.

    logprob [hypothesis]: of the posterior that weights the token sequences of a text.
    """
    row = selection.hypothesis[~texts.repeated[selection.hypothesis]]
    best, text = np.unique(texts.first[row], return_inverse=True)
    order = np.argsort(text, kind="stable")
    within = selection_of(row[order], text[order], len(best))
    sentence = np.repeat(selection.group, selection.sizes)
    of_best = sentence[np.searchsorted(selection.hypothesis, best)]
    of_texts = selection_of(np.arange(len(best)), of_best, selection.n_group)
    return MergedTexts(of_texts, within, importance(logprob, within, 1.0))

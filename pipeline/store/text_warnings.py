"""Texts of a store that are not as people write them."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.store.reader import Store
from pipeline.text_traces import Traces

_ROWS = 2**11  # read at a time


def text_warnings(store: Store) -> Iterator[str]:
    """Warn, with counts, about hypotheses and references that are cut into subwords or tokenised.

    Metrics compare detokenised words.
    """
    sizes = {"/hypothesis/text": store.n_hypothesis, "/sentence/reference": store.n_sentence}
    for name, n_row in sizes.items():
        if store.has(name):
            traces = Traces()
            for start in range(0, n_row, _ROWS):
                for text in store.read(name, start, min(start + _ROWS, n_row)):
                    traces.add(str(text))
            yield from traces.warnings(f"{store.path}: {name}")

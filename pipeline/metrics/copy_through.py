"""Copy-through: how much of the source a translation repeats instead of translating it.

A word is a run of letters, digits and underscores; case counts, punctuation does not. A word that
stands n times in the source can be copied n times. Names and numbers are copied rightly, so that
a share says something beside that of the in-domain set alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.metrics.cell import COPY_THROUGH, Cell
from pipeline.metrics.decodes import Decode, Measured
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import groups, shared_cell
from pipeline.metrics.statistic import FloatArray, Statistic, ratio

_WORD = re.compile(r"\w+")
_NO_WORD = "no sentence has a hypothesis and a word in its source"
_NO_TEXT = "speech has no source text"
_SIGNATURE = "copied|words:letters-and-digits|case:mixed|counts:multiset"


@dataclass(frozen=True)
class CopyCounts:
    """Source words and those of them that the output repeats, each [sentence]."""

    copied: FloatArray
    source_words: FloatArray


def copy_counts(sources: Sequence[str], outputs: Sequence[str]) -> CopyCounts:
    """Count the words of each source and how many of them stand in its output too."""
    words = [
        (Counter(_WORD.findall(source)), Counter(_WORD.findall(output)))
        for source, output in zip(sources, outputs, strict=True)
    ]
    return CopyCounts(
        np.array([(source & output).total() for source, output in words], dtype=np.float64),
        np.array([source.total() for source, _ in words], dtype=np.float64),
    )


def copied_percent_statistic(counts: CopyCounts) -> Statistic:
    """Percent of all source words that were copied, as a function of weights."""
    return lambda weights: 100 * ratio(weights @ counts.copied, weights @ counts.source_words)


def copy_through_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """Share of the source's words that the output repeats, in percent, of each group of decodes."""
    for group in groups(decodes):
        cell = replace(shared_cell(group), column=COPY_THROUGH, metric="copied_percent")
        counts = [_counts(decode) for decode in group]
        used = np.all([one.source_words > 0 for one in counts], axis=0)
        if not used.any():
            yield replace(cell, reason=_NO_WORD)
            continue
        statistics = [
            copied_percent_statistic(CopyCounts(one.copied[used], one.source_words[used]))
            for one in counts
        ]
        yield evaluation.mean_filled(cell, statistics, evaluation.weights(used), _SIGNATURE)


def with_copy_through(measured: Measured, source_is_text: bool) -> Measured:
    """A decode whose measures include the copied share of each source, the same at every setting.

    A sentence without a hypothesis or without a word in its source has none, nor has any sentence
    of speech, whose source is a sound.
    """
    if source_is_text:
        counts = _counts(measured.decode)
        share, why_null = ratio(counts.copied, counts.source_words), _NO_WORD
    else:
        share, why_null = np.full(len(measured.decode.texts), np.nan), _NO_TEXT
    grid = [
        replace(
            one,
            values={**one.values, COPY_THROUGH: share},
            why_null={**one.why_null, COPY_THROUGH: why_null},
        )
        for one in measured.grid
    ]
    return replace(measured, grid=grid)


def _counts(decode: Decode) -> CopyCounts:
    """Of every sentence; 0 words where there is no hypothesis to compare with."""
    sources = [
        source if text is not None else ""
        for source, text in zip(decode.sources, decode.texts, strict=True)
    ]
    return copy_counts(sources, [text or "" for text in decode.texts])

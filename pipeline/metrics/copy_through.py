"""Copy-through: the share of a source's words that its hypothesis repeats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.metrics.cell import COPY_THROUGH, Cell
from pipeline.metrics.decodes import Decode, common_cell, decodes_by_key, runs_of_each
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import MeasuredDecode
from pipeline.quality.normalisation import FORM, normalised
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, ratio

_WORD = re.compile(r"\w+")
_NO_WORD = "no sentence has a hypothesis and a word in its source"
_NO_TEXT = "speech has no source text"
_SIGNATURE = f"copied|words:letters-and-digits|case:mixed|norm:{FORM}|counts:multiset"


@dataclass(frozen=True)
class CopyCounts:
    """Number of source words, and how many of them the hypothesis repeats, each [sentence]."""

    copied: FloatArray
    source_words: FloatArray


def copy_counts(sources: Sequence[str], hypotheses: Sequence[str]) -> CopyCounts:
    """Count the words of each source, and those that its hypothesis also has."""
    words = [
        (Counter(_WORD.findall(source)), Counter(_WORD.findall(hypothesis)))
        for source, hypothesis in zip(normalised(sources), normalised(hypotheses), strict=True)
    ]
    return CopyCounts(
        np.array([(source & hypothesis).total() for source, hypothesis in words], dtype=np.float64),
        np.array([source.total() for source, _ in words], dtype=np.float64),
    )


def weighted_copied_percent(counts: CopyCounts) -> WeightedMetric:
    """Percentage of all source words that were copied, as a function of weights."""
    return lambda weights: 100 * ratio(weights @ counts.copied, weights @ counts.source_words)


def copy_through_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """Percentage of source words that the hypotheses repeat, for each set of replicates."""
    for replicates in decodes_by_key(decodes):
        cell = replace(common_cell(replicates), column=COPY_THROUGH, metric="copied_percent")
        counts = [_decode_counts(decode) for decode in replicates]
        used = np.all([of_decode.source_words > 0 for of_decode in counts], axis=0)
        if not used.any():
            yield replace(cell, reason=_NO_WORD)
            continue
        metrics = [
            weighted_copied_percent(
                CopyCounts(of_decode.copied[used], of_decode.source_words[used])
            )
            for of_decode in counts
        ]
        resamples = evaluation.resampled(replicates[0], used)
        yield evaluation.mean_filled(cell, metrics, runs_of_each(replicates), resamples, _SIGNATURE)


def with_copy_through(measured: MeasuredDecode, source_is_text: bool) -> MeasuredDecode:
    """Add the copied share of each source to the measures of a decode, the same at every setting.

    It is NaN for a sentence without a hypothesis or without a word in its source, and for all
    sentences of speech, whose source is audio.
    """
    if source_is_text:
        counts = _decode_counts(measured.decode)
        share, why_null = ratio(counts.copied, counts.source_words), _NO_WORD
    else:
        share, why_null = np.full(len(measured.decode.texts), np.nan), _NO_TEXT
    return measured.with_measure(COPY_THROUGH, share, why_null)


def _decode_counts(decode: Decode) -> CopyCounts:
    """Counts of every sentence; without a hypothesis there are 0 source words."""
    sources = [
        source if text is not None else ""
        for source, text in zip(decode.sources, decode.texts, strict=True)
    ]
    return copy_counts(sources, [text or "" for text in decode.texts])

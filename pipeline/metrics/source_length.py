"""The length of a source: a naive measure that any method must beat."""

from __future__ import annotations

import numpy as np

from pipeline.metrics.cell import SOURCE_LENGTH
from pipeline.metrics.measure_files import MeasuredDecode
from pipeline.quality.normalisation import normalised

_NO_TEXT = "speech has no source text"


def with_source_length(measured: MeasuredDecode, source_is_text: bool) -> MeasuredDecode:
    """Add the number of characters of each source, without white space, the same at every setting.

    It is NaN for a sentence without a hypothesis, and for all sentences of speech, whose source is
    audio.
    """
    decode = measured.decode
    length = np.full(len(decode.texts), np.nan)
    if source_is_text:
        has_hypothesis = np.array([text is not None for text in decode.texts], dtype=bool)
        characters = [len("".join(source.split())) for source in normalised(decode.sources)]
        length = np.where(has_hypothesis, characters, np.nan)
    return measured.with_measure(SOURCE_LENGTH, length, "" if source_is_text else _NO_TEXT)

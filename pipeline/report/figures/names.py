"""Names of measures, test sets and units as figures print them."""

from __future__ import annotations

from pipeline.metrics.quality import Quality
from pipeline.report.measure_names import parts_of

_QUALITIES = {"bleu": "sentence BLEU", "wer_percent": "sentence WER"}


def measure(name: str) -> str:
    """`prex_rmi_s` -> `M S-IW (PrEx)`; a name of another form stays as it is."""
    parts = parts_of(name)
    if parts is None or parts.estimator is None:
        return name
    return f"{parts.kind.letter} {parts.estimator}{parts.kind.remark} ({parts.posterior})"


def error(quality: Quality) -> str:
    """The error of a sentence in words, with its unit."""
    if quality.name == "bleu":
        return "100 - sentence BLEU, percent"
    return f"{sentence_quality(quality)}, percent"


def sentence_quality(quality: Quality) -> str:
    """The quality metric of a single sentence in words."""
    return _QUALITIES.get(quality.name, f"sentence {quality.name}")

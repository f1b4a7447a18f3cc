"""Names of measures, test sets and units as figures print them."""

from __future__ import annotations

from pipeline.metrics.quality import Quality

_MEASURES = {"entropy": "H", "mi": "I", "epkl": "K", "rmi": "M"}
_POSTERIORS = {"prex": "PrEx", "expr": "ExPr"}
_ESTIMATORS = {"c": "C-IW", "s": "S-IW"}
_QUALITIES = {"bleu": "sentence BLEU", "wer_percent": "sentence WER"}


def measure(name: str) -> str:
    """`prex_rmi_s` -> `M S-IW (PrEx)`; a name of another form stays as it is."""
    parts = name.split("_")
    if len(parts) != 3 or parts[1] not in _MEASURES or parts[2] not in _ESTIMATORS:
        return name
    return f"{_MEASURES[parts[1]]} {_ESTIMATORS[parts[2]]} ({_POSTERIORS[parts[0]]})"


def error(quality: Quality) -> str:
    """The error of a sentence in words, with its unit."""
    if quality.name == "bleu":
        return "100 - sentence BLEU, percent"
    return f"{sentence_quality(quality)}, percent"


def sentence_quality(quality: Quality) -> str:
    """The quality metric of a single sentence in words."""
    return _QUALITIES.get(quality.name, f"sentence {quality.name}")

"""Histograms of sentence quality and of the confidence of tokens and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.metrics.calibration_cells import best_tokens
from pipeline.metrics.statistic import FloatArray
from pipeline.report.figures import names
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.report.figures.sheet import Sheet
from pipeline.report.figures.style import outline, panels, shared_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_BIN = 20
_COLUMNS = ["test_set", "counted", "low", "high", "n", "share_percent"]


def error_histograms(evidence: TaskEvidence) -> Sheet:
    """Sentence BLEU, or WER, of the 1-best hypotheses of every test set with references.

    Data: test_set, counted (what), low and high of the bin in percent, n sentences,
    share_percent of the set. The last bin takes in what lies above. Source: `fig:error-histograms`.
    """
    quality = evidence.quality
    shown = names.sentence_quality(quality)
    rows = []
    for test_set, part in evidence.baseline_first(evidence.searched()).items():
        errors = evidence.errors(part)
        errors = errors[~np.isnan(errors)]
        percent = 100 - errors if quality.name == "bleu" else errors
        rows.append(_histogram(test_set, f"{shown}, percent", np.minimum(percent, 100), 100))
    return Sheet(
        f"How {shown} is spread",
        f"{shown[0].upper()}{shown[1:]} of the 1-best hypotheses, in bins of {100 // _N_BIN} "
        "percent; the last bin takes in what lies above 100.",
        _joined(rows),
        _draw,
        "no test set was found by search and has references",
    )


def confidence_histograms(evidence: TaskEvidence) -> Sheet:
    """Probabilities of the tokens of 1-best hypotheses, and their geometric mean by sentence.

    Data: test_set, counted (token or sentence confidence), low and high of the bin, n tokens or
    sentences, share_percent of the set. Source: `fig:confidence-histogram`.
    """
    rows = []
    for test_set, part in evidence.baseline_first(evidence.searched()).items():
        tokens = best_tokens(evidence.decodes[part], evidence.uncertainty / part / "token.parquet")
        if not len(tokens.sentence):
            continue
        length = np.bincount(tokens.sentence)
        with np.errstate(divide="ignore"):
            total = np.bincount(tokens.sentence, np.log(tokens.probability))
        said = length > 0
        rows.append(_histogram(test_set, "token confidence", tokens.probability, 1))
        rows.append(
            _histogram(test_set, "sentence confidence", np.exp(total[said] / length[said]), 1)
        )
    return Sheet(
        "How confident the ensemble is",
        "Probability that the posterior which decoded gave each token of the 1-best hypotheses, "
        f"and the geometric mean of a sentence's, in {_N_BIN} bins.",
        _joined(rows),
        _draw,
        "no test set was found by search",
    )


def _histogram(test_set: str, counted: str, values: FloatArray, highest: float) -> pd.DataFrame:
    counts, edges = np.histogram(values, bins=_N_BIN, range=(0, highest))
    return pd.DataFrame(
        {
            "test_set": test_set,
            "counted": counted,
            "low": edges[:-1],
            "high": edges[1:],
            "n": counts,
            "share_percent": 100 * counts / max(counts.sum(), 1),
        }
    )


def _joined(rows: list[pd.DataFrame]) -> pd.DataFrame:
    counted = [one for one in rows if one["n"].any()]
    return pd.concat(counted, ignore_index=True) if counted else pd.DataFrame(columns=_COLUMNS)


def _draw(data: pd.DataFrame) -> Figure:
    test_sets = list(dict.fromkeys(data["test_set"]))
    counted = list(dict.fromkeys(data["counted"]))
    figure, axes = panels(len(test_sets))
    for axis, test_set in zip(axes, test_sets, strict=True):
        for place, what in enumerate(counted):
            rows = data[(data["test_set"] == test_set) & (data["counted"] == what)]
            edges = [*rows["low"], *rows["high"].iloc[-1:]]
            axis.stairs(rows["share_percent"], edges, label=what, **outline(place))
        axis.set_title(test_set)
        axis.set_xlabel(counted[0] if len(counted) == 1 else "confidence")
        axis.set_ylabel("percent of the set")
    shared_legend(figure, axes)
    return figure

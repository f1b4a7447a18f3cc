"""Reliability diagrams: how right tokens and sentences are at each confidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.metrics.calibration import (
    LEVELS,
    Forecasts,
    best_tokens,
    calibrated_forecasts,
    expected_calibration_error,
    reliability,
)
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.figures import evidence as names
from pipeline.report.figures.drawing import Sheet, line, outline, panels, shared_legend
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_N_BIN = 20
_HISTOGRAM_COLUMNS = ["test_set", "counted", "low", "high", "n", "share_percent"]


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
        _draw_histograms,
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
        _draw_histograms,
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
    return (
        pd.concat(counted, ignore_index=True)
        if counted
        else pd.DataFrame(columns=_HISTOGRAM_COLUMNS)
    )


def _draw_histograms(data: pd.DataFrame) -> Figure:
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


_SYSTEMS = {
    "single": "single members",
    **{name: f"ensemble, {shown}" for name, shown in POSTERIORS.items()},
}
_RELIABILITY_COLUMNS = [
    "test_set", "level", "system", "low", "high", "n", "confidence", "right", "ece_percent"
]  # fmt: skip
_LEAST_ITEMS = 10  # of a bin that is drawn
_RIGHT = {"token": "tokens that match the reference", "sequence": "mean sentence quality"}


def reliability_diagrams(evidence: TaskEvidence) -> Sheet:
    """Accuracy over confidence for single members and both combinations, a panel a set and level.

    Data: test_set, level (token or sequence), system (single, prex, expr), low and high of the bin,
    n tokens or sentences, their mean confidence and how right they are, both in [0, 1], and the
    system's ece_percent. Tokens of all single members are taken together.
    """
    systems: dict[str, dict[str, list[str]]] = {}
    for name in POSTERIORS:
        for test_set, part in evidence.in_domain(evidence.searched(name)).items():
            systems.setdefault(test_set, {})[name] = [part]
    for part, decode in evidence.decodes.items():
        if decode.cell.ensemble == "single" and decode.cell.test_set in systems:
            systems[decode.cell.test_set].setdefault("single", []).append(part)
    rows = [
        row
        for test_set, parts in systems.items()
        for system in _SYSTEMS
        for row in _rows(evidence, test_set, system, parts.get(system, []))
    ]
    return Sheet(
        "Reliability of confidence",
        "Token: probability under the posterior that decoded, against whether the token matches "
        "the reference in a Levenshtein alignment of sub-word units. Sequence: geometric mean of "
        "the token probabilities, against sentence BLEU / 100 or 1 - WER (at least 0). On the "
        f"diagonal the two agree. Bins with fewer than {_LEAST_ITEMS} items are not drawn.",
        pd.DataFrame(rows, columns=_RELIABILITY_COLUMNS),
        _draw_reliability,
        "no in-domain test set was decoded by search and has references",
    )


def _rows(
    evidence: TaskEvidence, test_set: str, system: str, parts: list[str]
) -> list[dict[str, object]]:
    found = [
        calibrated_forecasts(part, evidence.decodes, evidence.uncertainty, evidence.quality)
        for part in parts
    ]
    rows: list[dict[str, object]] = []
    for level in LEVELS:
        given = [one[level] for one in found]
        usable = [one for one in given if isinstance(one, Forecasts)]
        if not usable:
            continue
        together = Forecasts(
            np.concatenate([one.confidence for one in usable]),
            np.concatenate([one.right for one in usable]),
            np.concatenate([one.sentence for one in usable]),
        )
        ece = float(np.mean([expected_calibration_error(o.confidence, o.right) for o in usable]))
        shared = {"test_set": test_set, "level": level, "system": system, "ece_percent": ece}
        rows += [{**shared, **asdict(one)} for one in reliability(together)]
    return rows


def _draw_reliability(data: pd.DataFrame) -> Figure:
    shown = list(dict.fromkeys(zip(data["test_set"], data["level"], strict=True)))
    figure, axes = panels(len(shown), most_columns=2)
    for axis, (test_set, level) in zip(axes, shown, strict=True):
        axis.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="agreement")
        for place, (system, label) in enumerate(_SYSTEMS.items()):
            rows = data[
                (data["test_set"] == test_set)
                & (data["level"] == level)
                & (data["system"] == system)
                & (data["n"] >= _LEAST_ITEMS)
            ]
            if len(rows):
                style = line(place, len(rows)) | {"markevery": 1}
                axis.plot(rows["confidence"], rows["right"], label=label, **style)
        axis.set_title(f"{test_set}, {level}")
        axis.set_xlabel(f"mean confidence of the {level}s in a bin")
        axis.set_ylabel(_RIGHT[level])
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
    shared_legend(figure, axes)
    return figure

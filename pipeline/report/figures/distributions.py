"""Histograms of errors and confidences, and reliability diagrams."""

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
from pipeline.report.figures.drawing import (
    Sheet,
    grouped_panels,
    label_left,
    look,
    outline,
    panels,
    shared_legend,
)
from pipeline.report.figures.evidence import TaskEvidence, quality_text
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_BIN = 20
_HISTOGRAM_COLUMNS = ["test_set", "counted", "low", "high", "n", "share_percent"]
_SYSTEMS = {"single": "single members", **POSTERIORS}
_RELIABILITY_COLUMNS = [
    "test_set", "level", "system", "low", "high", "n", "confidence", "right", "ece_percent"
]  # fmt: skip
_LEAST_ITEMS = 10  # bins with fewer items are not drawn
_ACCURACY = {"token": "tokens that match the reference", "sequence": "mean sentence quality"}


def error_histograms(evidence: TaskEvidence) -> Sheet:
    """Sentence BLEU or WER of the 1-best hypotheses, per test set with references.

    Data: test_set, counted (the quantity), low and high (the bin, in percent), n (sentences) and
    share_percent (of the test set). The last bin includes all higher values. Source:
    `fig:error-histograms`.
    """
    quality = evidence.quality
    metric = quality_text(quality)
    histograms = []
    for test_set, part in evidence.baseline_first(evidence.searched()).items():
        errors = evidence.errors(part)
        errors = errors[~np.isnan(errors)]
        percent = 100 - errors if quality.name == "bleu" else errors
        histograms.append(_histogram(test_set, f"{metric}, percent", np.minimum(percent, 100), 100))
    return Sheet(
        f"Distribution of {metric}",
        f"{metric[0].upper()}{metric[1:]} of the 1-best hypotheses, in bins of {100 // _N_BIN} "
        f"percent.{'' if quality.name == 'bleu' else ' The last bin includes values above 100.'}",
        _joined(histograms),
        _draw_histograms,
        "no test set with references was decoded by search",
    )


def confidence_histograms(evidence: TaskEvidence) -> Sheet:
    """Token probabilities of the 1-best hypotheses, and their geometric mean per sentence.

    Data: test_set, counted (token or sentence confidence), low and high (the bin), n (tokens or
    sentences) and share_percent (of the test set). Source: `fig:confidence-histogram`.
    """
    histograms = []
    for test_set, part in evidence.baseline_first(evidence.searched()).items():
        tokens = best_tokens(evidence.decodes[part], evidence.uncertainty / part / "token.parquet")
        if not len(tokens.sentence):
            continue
        length = np.bincount(tokens.sentence)
        with np.errstate(divide="ignore"):
            total = np.bincount(tokens.sentence, np.log(tokens.probability))
        has_token = length > 0
        histograms.append(_histogram(test_set, "token confidence", tokens.probability, 1))
        histograms.append(
            _histogram(
                test_set, "sentence confidence", np.exp(total[has_token] / length[has_token]), 1
            )
        )
    return Sheet(
        "Distribution of confidence",
        "Probability of each token of the 1-best hypotheses under the posterior that was used for "
        f"decoding, and the geometric mean of these probabilities per sentence, in {_N_BIN} bins.",
        _joined(histograms),
        _draw_histograms,
        "no test set was decoded by search",
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


def _joined(histograms: list[pd.DataFrame]) -> pd.DataFrame:
    histograms = [histogram for histogram in histograms if histogram["n"].any()]
    if not histograms:
        return pd.DataFrame(columns=_HISTOGRAM_COLUMNS)
    return pd.concat(histograms, ignore_index=True)


def _draw_histograms(data: pd.DataFrame) -> Figure:
    test_sets = list(dict.fromkeys(data["test_set"]))
    counted = list(dict.fromkeys(data["counted"]))
    figure, (axes,) = grouped_panels([len(test_sets)])
    for axis, test_set in zip(axes, test_sets, strict=True):
        for index, quantity in enumerate(counted):
            rows = data[(data["test_set"] == test_set) & (data["counted"] == quantity)]
            edges = [*rows["low"], *rows["high"].iloc[-1:]]
            axis.stairs(rows["share_percent"], edges, label=quantity, **outline(index))
        axis.set_title(test_set)
        axis.set_xlabel(counted[0] if len(counted) == 1 else "confidence")
    label_left(axes, "percent of the test set")
    if len(counted) > 1:
        shared_legend(figure, axes)
    return figure


def reliability_diagrams(evidence: TaskEvidence) -> Sheet:
    """Accuracy against confidence for single members and both combinations.

    There is one panel per in-domain test set and level. Data: test_set, level (token or sequence),
    system (single, prex, expr), low and high (the bin), n (tokens or sentences), confidence and
    right (their mean confidence and accuracy, both in [0, 1]) and ece_percent (of the system). All
    single members are pooled.
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
        for row in _reliability_rows(evidence, test_set, system, parts.get(system, []))
    ]
    return Sheet(
        "Reliability diagrams",
        "Token level: the probability of a token under the posterior that was used for decoding, "
        "compared with whether the token matches the reference in a Levenshtein alignment of "
        "subwords. Sequence level: the geometric mean of the token probabilities, compared with "
        "sentence BLEU / 100 or 1 - WER (at least 0). A calibrated system lies on the diagonal. "
        "The legend has the expected calibration error (ECE), in percent. "
        f"Bins with fewer than {_LEAST_ITEMS} items are not drawn.",
        pd.DataFrame(rows, columns=_RELIABILITY_COLUMNS),
        _draw_reliability,
        "no in-domain test set with references was decoded by search",
    )


def _reliability_rows(
    evidence: TaskEvidence, test_set: str, system: str, parts: list[str]
) -> list[dict[str, object]]:
    by_part = [
        calibrated_forecasts(part, evidence.decodes, evidence.uncertainty, evidence.quality)
        for part in parts
    ]
    rows: list[dict[str, object]] = []
    for level in LEVELS:
        of_level = [forecasts[level] for forecasts in by_part]
        usable = [forecasts for forecasts in of_level if isinstance(forecasts, Forecasts)]
        if not usable:
            continue
        pooled = Forecasts(
            np.concatenate([forecasts.confidence for forecasts in usable]),
            np.concatenate([forecasts.right for forecasts in usable]),
            np.concatenate([forecasts.sentence for forecasts in usable]),
        )
        errors = [expected_calibration_error(own.confidence, own.right) for own in usable]
        shared = {
            "test_set": test_set,
            "level": level,
            "system": system,
            "ece_percent": float(np.mean(errors)),
        }
        rows += [{**shared, **asdict(reliability_bin)} for reliability_bin in reliability(pooled)]
    return rows


def _draw_reliability(data: pd.DataFrame) -> Figure:
    shown = list(dict.fromkeys(zip(data["test_set"], data["level"], strict=True)))
    figure, axes = panels(len(shown), most_columns=2)
    for axis, (test_set, level) in zip(axes, shown, strict=True):
        diagonal = np.linspace(0, 1, 50)  # points that the legend keeps clear of
        axis.plot(diagonal, diagonal, color="0.75", linewidth=1)
        for system, label in _SYSTEMS.items():
            of_system = data[
                (data["test_set"] == test_set)
                & (data["level"] == level)
                & (data["system"] == system)
            ]
            rows = of_system[of_system["n"] >= _LEAST_ITEMS]
            if len(rows):
                label = f"{label}: {rows['ece_percent'].iloc[0]:.1f}"
                style = look(system) | {"markersize": 3}
                axis.plot(rows["confidence"], rows["right"], label=label, **style)
        axis.legend(loc="best", title="ECE, percent", alignment="left", handlelength=2.5)
        axis.set_title(f"{test_set}: {level}s")
        axis.set_xlabel(f"mean confidence of the {level}s in a bin")
        axis.set_ylabel(_ACCURACY[level])
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
    return figure

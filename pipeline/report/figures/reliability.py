"""Reliability diagrams: how right tokens and sentences are at each confidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.metrics.calibration import Forecasts, expected_calibration_error, reliability
from pipeline.metrics.calibration_cells import LEVELS, calibrated_forecasts
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.report.figures.sheet import Sheet
from pipeline.report.figures.style import line, panels, shared_legend
from pipeline.report.measure_names import POSTERIORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SYSTEMS = {
    "single": "single members",
    **{name: f"ensemble, {shown}" for name, shown in POSTERIORS.items()},
}
_COLUMNS = [
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
        pd.DataFrame(rows, columns=_COLUMNS),
        _draw,
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


def _draw(data: pd.DataFrame) -> Figure:
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

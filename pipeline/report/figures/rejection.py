"""Rejection curves by quality and by external scores, and what the rejection ratio is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.metrics.rejection import rejection_curve
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.figures.drawing import Sheet, line, panels, shared_legend
from pipeline.report.figures.evidence import TaskEvidence, error_text, usable
from pipeline.report.names import short_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = ("prex_entropy_s", "prex_entropy_c", "prex_rmi_s", "prex_mi_c", "expr_entropy_s")
_EXAMPLE = "prex_entropy_s"
_RANDOM, _ORACLE = "random", "oracle"
_COLUMNS = ["test_set", "order", "replaced_percent", "error_percent", "prr_percent", "error"]
_SCORE_COLUMNS = [
    *("score", "test_set", "order", "replaced_percent", "remaining_error", "prr_percent", "error")
]
_REPLACED_PERCENT = np.linspace(0, 100, 101)
_NO_SET = "no in-domain test set has references and measures at B = 1"


def rejection_curves(evidence: TaskEvidence) -> Sheet:
    """Rejection curves of selected measures, of the oracle and of random order, and their gain.

    Data: test_set, order (a measure, oracle or random), replaced_percent (of the sentences),
    error_percent (the mean error that remains), prr_percent (of the order) and error (what the
    error is). Source: `fig:apn-seq-rejection`.
    """
    return Sheet(
        "Rejection curves",
        "Mean error of the 1-best hypotheses that remains when the most uncertain sentences are "
        "replaced by their references (B = 1), and the gain over random order. Oracle: the "
        "sentences with the largest error are replaced first. Random: the expectation.",
        _curves(evidence, _MEASURES),
        partial(_draw_curves, panel=["test_set"], y="error_percent", unit="points"),
        _NO_SET,
    )


def rejection_example(evidence: TaskEvidence) -> Sheet:
    """Shade the two areas whose ratio is the prediction rejection ratio (PRR).

    Data: as in `rejection_curves`, for one test set and one measure. Source:
    `fig:rejection-curves-pn`.
    """
    data = _curves(evidence, (_EXAMPLE,))
    first = data[data["test_set"] == data["test_set"].iloc[0]] if len(data) else data
    return Sheet(
        "The prediction rejection ratio (PRR)",
        "PRR is the area between the measure's curve and the random line (right) as a percentage "
        "of the area between the oracle's curve and the random line (left).",
        first,
        _draw_example,
        _NO_SET,
    )


def score_curves(evidence: TaskEvidence) -> Sheet:
    """Rejection curves of selected measures against each external score, and their gain.

    Data: score, test_set, order, replaced_percent, remaining_error, prr_percent and error, as in
    `rejection_curves`. The error of a sentence is the distance of its score from the best score of
    the decode; PRR does not depend on this choice.
    """
    return Sheet(
        "Rejection curves against external scores",
        "Mean distance from the best score that remains when the most uncertain sentences are "
        "replaced by sentences with the best score (B = 1), and the gain over random order. "
        "Oracle: the sentences with the worst score are replaced first. Random: the expectation.",
        _score_curves(evidence, _MEASURES),
        partial(_draw_curves, panel=["score", "test_set"], y="remaining_error", unit="score"),
        "no file of metrics.scores belongs to a decode with PrEx and measures at B = 1"
        if evidence.scores
        else "",
    )


def _curves(evidence: TaskEvidence, measures: tuple[str, ...]) -> pd.DataFrame:
    frames = []
    for test_set, part in evidence.in_domain(evidence.searched()).items():
        curves = _curves_of_part(evidence, part, evidence.errors(part), measures)
        frames.append(curves.assign(test_set=test_set, error=error_text(evidence.quality)))
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame(columns=_COLUMNS)
    data = pd.concat(frames, ignore_index=True)
    return data.rename(columns={"remaining_error": "error_percent"})[_COLUMNS]


def _score_curves(evidence: TaskEvidence, measures: tuple[str, ...]) -> pd.DataFrame:
    frames = []
    for kind in evidence.scores:
        for test_set, part in evidence.baseline_first(evidence.searched()).items():
            decode = evidence.decodes[part]
            if not kind.has(decode) or np.isnan(kind.badness(decode)).all():
                continue
            badness = kind.badness(decode)
            errors = badness - np.nanmin(badness)
            curves = _curves_of_part(evidence, part, errors, measures)
            error = f"distance from the best {kind.name}"
            frames.append(curves.assign(score=kind.name, test_set=test_set, error=error))
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame(columns=_SCORE_COLUMNS)
    return pd.concat(frames, ignore_index=True)[_SCORE_COLUMNS]


def _curves_of_part(
    evidence: TaskEvidence, part: str, errors_of_part: FloatArray, measures: tuple[str, ...]
) -> pd.DataFrame:
    """The curve of each order: order, replaced_percent, remaining_error, prr_percent."""
    measured = evidence.one_best_measures(part)
    if measured is None:
        return pd.DataFrame()
    rows: list[pd.DataFrame] = []
    orders = {name: measured.values[name] for name in measures if name in measured.values}
    for order, values in {**orders, _ORACLE: errors_of_part}.items():
        errors, uncertainty = usable(errors_of_part, values)
        if not len(errors):
            continue
        oracle = rejection_curve(errors, errors)
        random_area = errors.mean() / 2
        curve = rejection_curve(errors, uncertainty)
        gain, most = random_area - curve.area, random_area - oracle.area
        rows.append(
            pd.DataFrame(
                {
                    "order": order,
                    "replaced_percent": _REPLACED_PERCENT,
                    "remaining_error": curve.at(_REPLACED_PERCENT / 100),
                    "prr_percent": 100 * gain / most if most > 0 else np.nan,
                }
            )
        )
        if order == _ORACLE:
            random_error = errors.mean() * (1 - _REPLACED_PERCENT / 100)
            rows.append(
                rows[-1].assign(order=_RANDOM, remaining_error=random_error, prr_percent=0.0)
            )
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def _draw_curves(data: pd.DataFrame, panel: list[str], y: str, unit: str) -> Figure:
    """Draw two panels per group of rows: the curves, and how far each lies below the random line.

    Rows with the same values in the columns `panel` are a group. `y` is the column of the remaining
    error, and `unit` the unit of the gain.
    """
    groups = list(data.groupby(panel, sort=False))
    figure, axes = panels(2 * len(groups), most_columns=2)
    orders = list(dict.fromkeys(data["order"]))
    for row, (names, of_group) in enumerate(groups):
        curve, gain = axes[2 * row : 2 * row + 2]
        random = of_group.loc[of_group["order"] == _RANDOM, y].to_numpy()
        for index, order in enumerate(orders):
            rows = of_group[of_group["order"] == order]
            if rows.empty:
                continue
            replaced, error = rows["replaced_percent"], rows[y].to_numpy()
            style = line(index, len(rows))
            label = order if order in (_ORACLE, _RANDOM) else short_label(order)
            curve.plot(replaced, error, label=label, **style)
            gain.plot(replaced, random - error, label=label, **style)
        title = ", ".join(str(name) for name in reversed(names))
        curve.set_title(title)
        curve.set_ylabel(f"remaining mean error\n({of_group['error'].iloc[0]})")
        curve.set_ylim(bottom=0)
        gain.set_title(f"{title}, gain")
        gain.set_ylabel(f"gain over random order, {unit}")
        for axis in (curve, gain):
            axis.set_xlabel("sentences replaced, percent")
    shared_legend(figure, axes)
    return figure


def _draw_example(data: pd.DataFrame) -> Figure:
    figure, axes = panels(2)
    replaced = _REPLACED_PERCENT
    curves = {str(order): rows["error_percent"].to_numpy() for order, rows in data.groupby("order")}
    measure = next(order for order in curves if order not in (_ORACLE, _RANDOM))
    ratio = data.loc[data["order"] == measure, "prr_percent"].iloc[0]
    measure_label = f"{short_label(measure)}: PRR {ratio:.1f} percent"
    for axis, order, hatch in zip(axes, (_ORACLE, measure), ("///", "..."), strict=True):
        label = _ORACLE if order == _ORACLE else measure_label
        axis.plot(replaced, curves[_RANDOM], label=_RANDOM, **line(1, len(replaced)))
        index = 0 if order == _ORACLE else 2
        axis.plot(replaced, curves[order], label=label, **line(index, len(replaced)))
        axis.fill_between(
            replaced,
            curves[order],
            curves[_RANDOM],
            facecolor="0.9",
            edgecolor="0.5",
            hatch=hatch,
            linewidth=0,
        )
        axis.set_title(f"{data['test_set'].iloc[0]}: area of {label.split(':')[0]}")
        axis.set_xlabel("sentences replaced, percent")
        axis.set_ylabel(f"remaining mean error\n({data['error'].iloc[0]})")
        axis.set_ylim(bottom=0)
    shared_legend(figure, axes)
    return figure

"""Rejection curves by quality and by external scores, and what the rejection ratio is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pipeline.metrics.rejection import rejection_curve, weighted_rejection_ratio
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.figures.drawing import Sheet, look, panels, stacked_panels
from pipeline.report.figures.evidence import TaskEvidence, error_text
from pipeline.report.names import short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURES = ("prex_entropy_s", "prex_entropy_c", "prex_rmi_s", "prex_mi_c", "expr_entropy_s")
_EXAMPLE = "prex_entropy_s"
_RANDOM, _ORACLE = "random", "oracle"
_PRR = ("prr_percent", "prr_low", "prr_high")
_COLUMNS = ["test_set", "order", "replaced_percent", "error_percent", *_PRR, "error"]
_SCORE_COLUMNS = [
    *("score", "test_set", "order", "replaced_percent", "remaining_error", *_PRR, "error")
]
_REPLACED = "sentences replaced, percent"
_CAPTION = (
    "Above: how much lower the mean error is than with random order, when the most uncertain "
    "sentences are replaced by {} (B = 1). Below: the mean error itself, where the error of a "
    "sentence is {}. The legend has the prediction rejection ratio (PRR) of each measure with its "
    "95 % bootstrap interval. Oracle: the sentences with the largest error are replaced first. "
    "Random: the expectation."
)
_REPLACED_PERCENT = np.linspace(0, 100, 101)
_NO_SET = "no in-domain test set has references and measures at B = 1"


def rejection_curves(evidence: TaskEvidence) -> Sheet:
    """Gain of selected measures over random order, their rejection curves, and those of the oracle.

    Data: test_set, order (a measure, oracle or random), replaced_percent (of the sentences),
    error_percent (the mean error that remains), prr_percent, prr_low and prr_high (PRR of the order
    and its interval; oracle and random have none) and error (what the error is). Source:
    `fig:apn-seq-rejection`.
    """
    return Sheet(
        "Rejection curves",
        _CAPTION.format("their references", error_text(evidence.quality)),
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
        "Left: the mean error that remains when sentences are replaced by their references, in "
        "three orders. Right: the distance of each curve from that of random order. PRR is the "
        f"dark area, that of {short_label(_EXAMPLE)}, as a percentage of the area of the oracle, "
        "which is dark and light.",
        first,
        _draw_example,
        _NO_SET,
    )


def score_curves(evidence: TaskEvidence) -> Sheet:
    """Rejection curves of selected measures against each external score, and their gain.

    Data: score, test_set, order, replaced_percent, remaining_error, prr_percent, prr_low, prr_high
    and error, as in `rejection_curves`. The error of a sentence is the distance of its score from
    the best score of the decode; PRR does not depend on this choice.
    """
    return Sheet(
        "Rejection curves against external scores",
        _CAPTION.format(
            "sentences with the best score", "the distance of its score from the best one"
        ),
        _score_curves(evidence, _MEASURES),
        partial(
            _draw_curves,
            panel=["score", "test_set"],
            y="remaining_error",
            unit="points of the score",
        ),
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
    """The curve of each order: order, replaced_percent, remaining_error, and PRR with interval."""
    measured = evidence.one_best_measures(part)
    if measured is None:
        return pd.DataFrame()
    rows: list[pd.DataFrame] = []
    orders = {name: measured.values[name] for name in measures if name in measured.values}
    for order, values in {**orders, _ORACLE: errors_of_part}.items():
        used = ~np.isnan(errors_of_part) & ~np.isnan(values)
        errors, uncertainty = errors_of_part[used], values[used]
        if not len(errors):
            continue
        found = evidence.estimate(weighted_rejection_ratio(errors, uncertainty), (part, used))
        prr = (found.value, found.interval.low, found.interval.high)
        remaining = rejection_curve(errors, uncertainty).at(_REPLACED_PERCENT / 100)
        rows.append(_curve(order, remaining, prr if order != _ORACLE else (100.0, None, None)))
        if order == _ORACLE:
            random_error = errors.mean() * (1 - _REPLACED_PERCENT / 100)
            rows.append(_curve(_RANDOM, random_error, (0.0, None, None)))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def _curve(
    order: str, remaining: FloatArray, prr: tuple[float | None, float | None, float | None]
) -> pd.DataFrame:
    columns = {"order": order, "replaced_percent": _REPLACED_PERCENT, "remaining_error": remaining}
    of_order = {
        name: np.nan if value is None else value for name, value in zip(_PRR, prr, strict=True)
    }
    return pd.DataFrame(columns | of_order)


def _draw_curves(data: pd.DataFrame, panel: list[str], y: str, unit: str) -> Figure:
    """Draw two panels per group of rows: the gain of each order over random order, and its curve.

    Rows with the same values in the columns `panel` are a group. `y` is the column of the remaining
    error, and `unit` the unit of the gain.
    """
    groups = list(data.groupby(panel, sort=False))
    figure, axes = stacked_panels(len(groups))
    for (names, of_group), (gain, remaining) in zip(groups, axes, strict=True):
        random = of_group.loc[of_group["order"] == _RANDOM, y].to_numpy()
        # The best measure is the first in the legend, and drawn above the others.
        by_prr = of_group.sort_values("prr_percent", ascending=False, kind="stable")
        for index, order in enumerate(dict.fromkeys(by_prr["order"])):
            rows = of_group[of_group["order"] == order]
            style = look(order) | {"marker": "", "zorder": 3 - index / 10}
            gain.plot(_REPLACED_PERCENT, random - rows[y], label=_legend_text(rows), **style)
            remaining.plot(_REPLACED_PERCENT, rows[y], **style)
        _name_reference_lines(gain, of_group, random, y)
        gain.set_title(": ".join(str(name) for name in reversed(names)))
        gain.set_ylabel(f"gain over random, {unit}")
        gain.tick_params(labelbottom=False)
        remaining.set_ylabel("remaining\nmean error")
        remaining.set_ylim(bottom=0)
        remaining.set_xlabel(_REPLACED)
        drawn = zip(*gain.get_legend_handles_labels(), strict=True)
        shown = [(handle, label) for handle, label in drawn if label]
        remaining.legend(
            *zip(*shown, strict=True),
            title="PRR, percent [95 % interval]",
            alignment="left",
            loc="upper left",
            bbox_to_anchor=(0, -0.58),
            borderaxespad=0,
        )
    return figure


def _legend_text(rows: pd.DataFrame) -> str:
    """The name of a measure with its PRR and interval; empty for the oracle and random order."""
    order, (value, low, high) = rows["order"].iloc[0], rows[[*_PRR]].iloc[0]
    if order in (_ORACLE, _RANDOM):
        return ""
    interval = "" if np.isnan(low) else f" [{low:.1f}, {high:.1f}]"
    return f"{short_label(order)}: {value:.1f}{interval}"


def _name_reference_lines(axis: Axes, rows: pd.DataFrame, random: FloatArray, y: str) -> None:
    """Write oracle and random order next to their lines of gain."""
    oracle = random - rows.loc[rows["order"] == _ORACLE, y].to_numpy()
    peak = int(np.argmax(oracle))
    text: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7}
    above = text | {"xytext": (0, 2), "ha": "center", "va": "bottom"}
    behind = text | {"xytext": (3, 0), "ha": "left", "va": "center", "annotation_clip": False}
    places = {_ORACLE: (_REPLACED_PERCENT[peak], oracle[peak]), _RANDOM: (100, 0)}
    for name, side in ((_ORACLE, above), (_RANDOM, behind)):
        axis.annotate(name, places[name], color=look(name)["color"], **side)
    axis.set_xlim(-2, 100)
    axis.margins(y=0.12)


def _draw_example(data: pd.DataFrame) -> Figure:
    figure, (remaining, gain) = panels(2)
    curves = {str(order): rows["error_percent"].to_numpy() for order, rows in data.groupby("order")}
    ratio = data.loc[data["order"] == _EXAMPLE, "prr_percent"].iloc[0]
    names = {_ORACLE: _ORACLE, _EXAMPLE: short_label(_EXAMPLE), _RANDOM: _RANDOM}
    for order, name in names.items():
        style = look(order) | {"marker": ""}
        remaining.plot(_REPLACED_PERCENT, curves[order], label=name, **style)
        gain.plot(_REPLACED_PERCENT, curves[_RANDOM] - curves[order], **style)
    for order, alpha in ((_ORACLE, 0.15), (_EXAMPLE, 0.35)):
        shade = {"color": look(order)["color"], "alpha": alpha, "linewidth": 0}
        gain.fill_between(_REPLACED_PERCENT, curves[_RANDOM] - curves[order], **shade)
    _name_reference_lines(gain, data, curves[_RANDOM], "error_percent")
    middle = float((curves[_RANDOM] - curves[_EXAMPLE])[50])
    gain.annotate(
        f"{names[_EXAMPLE]}\nPRR {ratio:.1f} percent", (50, middle / 2), ha="center", va="center"
    )
    remaining.legend(loc="upper right")
    remaining.set_title(str(data["test_set"].iloc[0]))
    remaining.set_ylabel(f"remaining mean error,\n{data['error'].iloc[0]}, percent")
    remaining.set_ylim(bottom=0)
    gain.set_ylabel("gain over random, points")
    for axis in (remaining, gain):
        axis.set_xlabel(_REPLACED)
    return figure

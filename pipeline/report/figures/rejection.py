"""Rejection curves of the in-domain test sets, and a figure that explains the rejection ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.metrics.rejection import rejection_curve
from pipeline.report.figures.drawing import Sheet, line, panels, shared_legend
from pipeline.report.figures.evidence import TaskEvidence, error_text, usable
from pipeline.report.names import short_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = ("prex_entropy_s", "prex_entropy_c", "prex_rmi_s", "prex_mi_c", "expr_entropy_s")
_EXAMPLE = "prex_entropy_s"
_RANDOM, _ORACLE = "random", "oracle"
_COLUMNS = ["test_set", "order", "replaced_percent", "error_percent", "prr_percent", "error"]
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
        _draw_curves,
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


def _curves(evidence: TaskEvidence, measures: tuple[str, ...]) -> pd.DataFrame:
    rows = []
    error_name = error_text(evidence.quality)
    for test_set, part in evidence.in_domain(evidence.searched()).items():
        measured = evidence.one_best_measures(part)
        if measured is None:
            continue
        errors_of_part = evidence.errors(part)
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
                        "test_set": test_set,
                        "order": order,
                        "replaced_percent": _REPLACED_PERCENT,
                        "error_percent": curve.at(_REPLACED_PERCENT / 100),
                        "prr_percent": 100 * gain / most if most > 0 else np.nan,
                        "error": error_name,
                    }
                )
            )
            if order == _ORACLE:
                random_error = errors.mean() * (1 - _REPLACED_PERCENT / 100)
                rows.append(
                    rows[-1].assign(order=_RANDOM, error_percent=random_error, prr_percent=0.0)
                )
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=_COLUMNS)


def _draw_curves(data: pd.DataFrame) -> Figure:
    """Draw two panels per test set: the curves, and how far each lies below the random line."""
    test_sets = list(dict.fromkeys(data["test_set"]))
    figure, axes = panels(2 * len(test_sets), most_columns=2)
    orders = list(dict.fromkeys(data["order"]))
    for row, test_set in enumerate(test_sets):
        curve, gain = axes[2 * row : 2 * row + 2]
        of_set = data[data["test_set"] == test_set]
        random = of_set.loc[of_set["order"] == _RANDOM, "error_percent"].to_numpy()
        for index, order in enumerate(orders):
            rows = of_set[of_set["order"] == order]
            if rows.empty:
                continue
            replaced, error = rows["replaced_percent"], rows["error_percent"].to_numpy()
            style = line(index, len(rows))
            label = order if order in (_ORACLE, _RANDOM) else short_label(order)
            curve.plot(replaced, error, label=label, **style)
            gain.plot(replaced, random - error, label=label, **style)
        curve.set_title(test_set)
        curve.set_ylabel(f"remaining mean error\n({data['error'].iloc[0]})")
        curve.set_ylim(bottom=0)
        gain.set_title(f"{test_set}, gain")
        gain.set_ylabel("gain over random order, points")
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

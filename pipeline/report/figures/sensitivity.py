"""Error and OOD detection against the number of hypotheses B and the importance temperature T."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from pipeline.metrics.bootstrap import Estimate
from pipeline.metrics.detection import weighted_roc_auc
from pipeline.metrics.rejection import weighted_rejection_ratio
from pipeline.quality.weighted_metric import FloatArray
from pipeline.report.figures.drawing import (
    Sheet,
    grouped_panels,
    label_left,
    look,
    shared_legend,
    whole_numbers,
)
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.report.names import short_label
from pipeline.store import open_store
from pipeline.uncertainty.sequence import Grid, sequence_measures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Total and knowledge uncertainty with both estimators, as in the paper's figures.
_MEASURES = ("prex_entropy_c", "prex_entropy_s", "prex_rmi_c", "prex_rmi_s")
_TEMPERATURES = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0)
_COLUMNS = ["test_set", "metric", "setting", "at", "measure", "percent", "low", "high"]
_LABELS = {"prr": "error detection,\nPRR, percent", "roc_auc": "OOD detection,\nROC-AUC, percent"}
_INTERVALS = " Shaded: 95 % bootstrap intervals. All panels of a metric have one scale."
_AXES = {"beam": "hypotheses B", "temperature": "importance temperature T"}

# (value of the setting, measure) -> [sentence]
_MeasuresBySetting: TypeAlias = dict[tuple[float, str], FloatArray]


def sensitivity_to_beam(evidence: TaskEvidence) -> Sheet:
    """PRR and ROC-AUC for B from 1 to the beam at T = 1, one panel per test set.

    Data: test_set, metric (prr or roc_auc), setting (beam), at (its value), measure, percent, low
    and high (of the interval, empty without one). Source:
    `fig-apn:ablation-seq-beamsize`, `fig-apn:ablation-ood-beamsize`.
    """
    return _sheet(
        evidence,
        "beam",
        "Sensitivity to the number of hypotheses",
        "Measures over the first B hypotheses of one beam, with importance weights at T = 1 and "
        "length normalisation. ROC-AUC is computed against {}.",
        lambda most: Grid(beam=range(1, most + 1), temperature=[1.0], length_norm=[True]),
    )


def sensitivity_to_temperature(evidence: TaskEvidence) -> Sheet:
    """PRR and ROC-AUC against the temperature of the importance weights, over the whole beam.

    Data: as in `sensitivity_to_beam`, for the setting temperature. Source:
    `fig-apn:ablation-seq-temp`, `fig-apn:ablation-ood-temp`.
    """
    return _sheet(
        evidence,
        "temperature",
        "Sensitivity to the importance temperature",
        "Measures over all hypotheses of the beam, with length normalisation. A higher T makes "
        "the importance weights more equal. ROC-AUC is computed against {}.",
        lambda most: Grid(beam=[most], temperature=_TEMPERATURES, length_norm=[True]),
    )


def _sheet(
    evidence: TaskEvidence,
    setting: str,
    title: str,
    caption: str,
    grid_of: Callable[[int], Grid],
) -> Sheet:
    """The figure of one setting; `grid_of` maps the largest number of hypotheses to a grid."""
    parts = evidence.searched()
    rows: list[dict[str, object]] = []
    reason = f"{evidence.baseline} was not decoded by {evidence.ensemble}"
    if evidence.baseline in parts:
        reason = "no in-domain test set has references, and there is no out-of-domain test set"
        most = _most_hypotheses(evidence, parts[evidence.baseline])
        measures = {
            test_set: _measures_by_setting(evidence, part, setting, grid_of(most))
            for test_set, part in parts.items()
        }
        rows = [{"setting": setting, **row} for row in _detection(evidence, parts, measures)]
    return Sheet(
        title,
        caption.format(evidence.baseline) + _INTERVALS,
        pd.DataFrame(rows, columns=_COLUMNS),
        partial(_draw, label=_AXES[setting], logarithmic=setting == "temperature"),
        reason,
    )


def _most_hypotheses(evidence: TaskEvidence, part: str) -> int:
    with open_store(evidence.decodes[part].path) as store:
        return int(np.diff(store.hypothesis_offset).max(initial=1))


def _measures_by_setting(
    evidence: TaskEvidence, part: str, setting: str, grid: Grid
) -> _MeasuresBySetting:
    """Measures at further settings, by the rules of the cells."""
    with open_store(evidence.decodes[part].path) as store:
        table = sequence_measures(
            store,
            grid.beam,
            grid.temperature,
            grid.length_norm,
            weights_from=evidence.rules.weights_from,
            eos=evidence.rules.eos,
            equal_texts=evidence.rules.equal_texts,
            measures=_MEASURES,
        )
    return {
        (at, name): table.loc[table[setting] == at, name].to_numpy()
        for at in table[setting].unique().tolist()
        for name in _MEASURES
    }


def _detection(
    evidence: TaskEvidence, parts: dict[str, str], measures: dict[str, _MeasuresBySetting]
) -> Iterator[dict[str, object]]:
    """PRR of the in-domain test sets and ROC-AUC of the OOD test sets, if they are defined."""
    for test_set, part in evidence.baseline_first(parts).items():
        in_domain = evidence.decodes[part].in_domain
        for (at, name), values in measures[test_set].items():
            if in_domain:
                found = _error_detection(evidence, part, values)
            else:
                baseline = parts[evidence.baseline]
                inside = measures[evidence.baseline].get((at, name), np.empty(0))
                found = _ood_detection(evidence, (baseline, inside), (part, values))
            if found.value is not None:
                yield {
                    "test_set": test_set,
                    "metric": "prr" if in_domain else "roc_auc",
                    "at": at,
                    "measure": name,
                    "percent": found.value,
                    "low": found.interval.low,
                    "high": found.interval.high,
                }


def _error_detection(evidence: TaskEvidence, part: str, values: FloatArray) -> Estimate:
    errors = evidence.errors(part)
    used = ~np.isnan(errors) & ~np.isnan(values)
    return evidence.estimate(weighted_rejection_ratio(errors[used], values[used]), (part, used))


def _ood_detection(
    evidence: TaskEvidence, in_domain: tuple[str, FloatArray], out_of_domain: tuple[str, FloatArray]
) -> Estimate:
    """ROC-AUC of two parts with their measures [sentence]."""
    sides = [(part, values, ~np.isnan(values)) for part, values in (in_domain, out_of_domain)]
    inside, outside = (values[used] for _, values, used in sides)
    return evidence.estimate(
        weighted_roc_auc(inside, outside), *((part, used) for part, _, used in sides)
    )


def _draw(data: pd.DataFrame, label: str, logarithmic: bool) -> Figure:
    groups = [of_metric.groupby("test_set", sort=False) for _, of_metric in _by_metric(data)]
    figure, axes_of_groups = grouped_panels([len(test_sets) for test_sets in groups])
    for (metric, _), test_sets, axes in zip(_by_metric(data), groups, axes_of_groups, strict=True):
        for axis, (test_set, rows) in zip(axes, test_sets, strict=True):
            for name in _MEASURES:
                points = rows[rows["measure"] == name]
                style = look(name) | {"markersize": 2.5}
                axis.plot(points["at"], points["percent"], label=short_label(name), **style)
                band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                low, high = (points[bound].astype(float) for bound in ("low", "high"))
                axis.fill_between(points["at"], low, high, **band)
            axis.set_title(str(test_set))
            axis.set_xlabel(label)
            if logarithmic:
                axis.set_xscale("log")
                axis.set_xticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", *"125", "10", "20", "50"])
                axis.minorticks_off()
            else:
                whole_numbers(axis)
        label_left(axes, _LABELS[str(metric)])
    shared_legend(figure, [axis for axes in axes_of_groups for axis in axes])
    return figure


def _by_metric(data: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for metric in _LABELS:
        if (data["metric"] == metric).any():
            yield metric, data[data["metric"] == metric]

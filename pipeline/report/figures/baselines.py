"""The measures of later work beside those of the paper, as dots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pandas as pd

from pipeline.metrics.cell import Cell
from pipeline.report.baselines import LATER, NAIVE, OF_PAPER, OF_SINGLE, baseline_rows
from pipeline.report.cells import CellIndex
from pipeline.report.figures.drawing import Sheet, shared_legend
from pipeline.report.figures.evidence import TaskEvidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = ["system", "measure", "group", "passes", "metric", "test_set", "percent", "low", "high"]
# Distinguishable with colour blindness and in grey: those of Okabe and Ito.
_COLOURS = {NAIVE: "#8c8c8c", OF_SINGLE: "#009e73", OF_PAPER: "#0072b2", LATER: "#d55e00"}
_MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*", "<", ">")
_ROW_INCHES, _WIDTH_INCHES = 0.17, 6.3


def baseline_dots(evidence: TaskEvidence) -> Sheet:
    """PRR and ROC-AUC of every measure, by system.

    Data: one row per dot with system, measure, group (naive, single model, paper or later work),
    passes (forward passes of one model per token), metric (prr or roc_auc), test_set, percent, and
    the bounds low and high of its interval. The numbers are those of the cells.
    """
    columns = [field.name for field in fields(Cell)]
    index = CellIndex(pd.DataFrame([asdict(cell) for cell in evidence.cells], columns=columns))
    return Sheet(
        "Measures of later work beside those of the paper",
        "In brackets: forward passes of one model per token. Left: prediction rejection ratio on "
        "the in-domain test set with its 95 % bootstrap interval; single members reject their own "
        "hypotheses. Right: ROC-AUC of each out-of-domain test set; 50 is chance.",
        pd.DataFrame(_dots(index, evidence.task), columns=_COLUMNS),
        _draw,
        "no in-domain test set has references and measures at B = 1",
    )


def _dots(index: CellIndex, task: str) -> Iterator[tuple[Any, ...]]:
    for row in baseline_rows(index, task):
        passes = row.baseline.passes(row.members)
        line = row.system, row.baseline.name, row.baseline.group, passes
        for metric, cells in (("prr", {row.prr.test_set: row.prr}), ("roc_auc", row.roc_auc)):
            for test_set, cell in cells.items():
                if cell.value is not None:
                    yield *line, metric, test_set, *_numbers(cell)


def _numbers(cell: Cell) -> tuple[float | None, float | None, float | None]:
    return cell.value, cell.low, cell.high


def _draw(data: pd.DataFrame) -> Figure:
    from matplotlib.figure import Figure

    lines = list(dict.fromkeys(zip(data["system"], data["measure"], data["passes"], strict=True)))
    height = {line: -number for number, line in enumerate(lines)}
    n_row = len(lines) + 6  # axis and legend
    figure = Figure(figsize=(_WIDTH_INCHES, _ROW_INCHES * n_row), layout="constrained")
    rejection, detection = figure.subplots(1, 2, sharey=True)
    test_sets = data.loc[data["metric"] == "roc_auc", "test_set"].unique()
    markers = {name: _MARKERS[n % len(_MARKERS)] for n, name in enumerate(test_sets)}
    for dot in data.to_dict("records"):
        at = height[dot["system"], dot["measure"], dot["passes"]]
        style = {"color": _COLOURS[dot["group"]], "markersize": 3.5, "linestyle": "none"}
        if dot["metric"] == "prr":
            if pd.notna(dot["low"]):
                rejection.plot([dot["low"], dot["high"]], [at, at], color=style["color"])
            rejection.plot(dot["percent"], at, marker="o", label=dot["group"], **style)
        else:
            marker = markers[dot["test_set"]]
            detection.plot(dot["percent"], at, marker=marker, fillstyle="none", **style)
    for test_set, marker in markers.items():
        shape = {"marker": marker, "fillstyle": "none", "markersize": 3.5, "linestyle": "none"}
        detection.plot([], [], color="0.3", label=test_set, **shape)
    _name_systems(rejection, detection, [line[0] for line in lines])
    names = [f"{measure} [{passes}]" for _, measure, passes in lines]
    rejection.set_yticks([height[line] for line in lines], names)
    rejection.set_title(", ".join(data.loc[data["metric"] == "prr", "test_set"].unique()))
    rejection.set_xlabel("error detection, PRR, percent")
    detection.axvline(50, color="0.6", linewidth=0.6)
    detection.set_title("out-of-domain sets")
    detection.set_xlabel("OOD detection, ROC-AUC, percent")
    shared_legend(figure, [rejection, detection])
    return figure


def _name_systems(left: Axes, right: Axes, systems: Sequence[str]) -> None:
    """Draw a line between systems, and write the name of each beside its rows."""
    first = 0
    for system, rows in groupby(systems):
        last = first + len(list(rows)) - 1
        if first:
            for axis in (left, right):
                axis.axhline(0.5 - first, color="0.6", linewidth=0.6)
        middle = (1.0, -(first + last) / 2)
        right.annotate(
            system,
            middle,
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            rotation=270,
            va="center",
            fontsize=7,
            annotation_clip=False,
        )
        first = last + 1

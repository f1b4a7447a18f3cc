"""Figures as tidy data with a function that draws them, their style, and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pipeline.errors import ConfigError
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.run.files import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "svg.hashsalt": "figures",
    # Keep text as text: files are smaller, and screen readers can read them.
    "svg.fonttype": "none",
}
# Distinguishable with colour blindness and in grey.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7a5a00", "#8c8c8c")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 1)), (0, (3, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
_PANEL_INCHES = (3.3, 2.6)
_LEGEND_COLUMNS_PER_PANEL = 2


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save figures in the style of the report, whatever style the user has set."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def line(index: int, n_point: int) -> dict[str, Any]:
    """Colour, dashes and sparse markers of the line with this index in the legend."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index % len(_DASHES)],
        "marker": _MARKERS[index % len(_MARKERS)],
        # Each line has a different offset, so that markers do not hide each other.
        "markevery": (index % max(1, n_point // 8), max(1, n_point // 8)),
    }


def outline(index: int) -> dict[str, Any]:
    """Style of overlaid histograms: the first is filled in light grey, the others are outlined."""
    if index == 0:
        return {"fill": True, "facecolor": "0.8", "edgecolor": "0.5"}
    return {"color": _COLOURS[index], "linestyle": _DASHES[index], "linewidth": 1.4}


def panels(n_panel: int, most_columns: int = 3) -> tuple[Figure, Sequence[Axes]]:
    """A figure of `n_panel` panels in rows of at most `most_columns`."""
    from matplotlib.figure import Figure

    n_column = min(n_panel, most_columns)
    n_row = -(-n_panel // n_column)
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * n_column, height * n_row), layout="constrained")
    axes = figure.subplots(n_row, n_column, squeeze=False).ravel()
    for unused in axes[n_panel:]:
        unused.remove()
    return figure, list(axes[:n_panel])


def shared_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Draw one legend below all panels, with each label once."""
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(_LEGEND_COLUMNS_PER_PANEL * _columns(axes), len(handles)),
        handlelength=4,
    )


def whole_numbers(axis: Axes) -> None:
    """Restrict the ticks of the horizontal axis to whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _columns(axes: Sequence[Axes]) -> int:
    """The number of columns of panels in a figure."""
    grid = axes[0].get_gridspec()
    return 1 if grid is None else int(grid.ncols)


Draw = Callable[[pd.DataFrame], "Figure"]


@dataclass(frozen=True)
class Sheet:
    """A figure that is not drawn yet: title, caption, tidy data, and the function that draws them.

    `data` has one row per point. If it is empty there is no picture, and `reason` says why. Without
    a reason too, the figure does not concern the run and is not listed.
    """

    title: str
    caption: str
    data: pd.DataFrame
    draw: Draw
    reason: str = ""


MakeSheet = Callable[[TaskEvidence], Sheet]


def make_figures(
    folder: Path, evidence: TaskEvidence, figures: Mapping[str, MakeSheet]
) -> list[dict[str, Any]]:
    """Write each figure as {task}_{name}.csv, .svg and .png, and their list {task}_figures.json.

    Returns the list. Its entries have name, task, title, caption, files and reason (why there is no
    picture, otherwise empty). Raises ConfigError if a function of report.figures does not return a
    Sheet.
    """
    listed = []
    for name, make in figures.items():
        sheet = make(evidence)
        if not isinstance(sheet, Sheet):
            raise ConfigError(
                f"report.figures.{name}: the function must return a Sheet (got {sheet!r}). "
                "Name another function."
            )
        if sheet.data.empty and not sheet.reason:
            continue
        files = _write_sheet(folder, f"{evidence.task}_{name}", sheet)
        listed.append(
            {
                "name": name,
                "task": evidence.task,
                "title": sheet.title,
                "caption": sheet.caption,
                "files": [path.name for path in files],
                "reason": sheet.reason if sheet.data.empty else "",
            }
        )
    write_json(folder / f"{evidence.task}_figures.json", listed)
    return listed


def _write_sheet(folder: Path, name: str, sheet: Sheet) -> list[Path]:
    """Write {name}.csv and, unless the data are empty, {name}.svg and {name}.png.

    The same data give the same bytes.
    """
    paths = [folder / f"{name}.csv"]
    sheet.data.to_csv(
        paths[0], index=False, lineterminator="\n", float_format="%.6g", encoding="utf-8"
    )
    if sheet.data.empty:
        return paths
    with styled():
        figure = sheet.draw(sheet.data)
        for suffix, absent in (("svg", ("Date", "Creator")), ("png", ("Software",))):
            paths.append(folder / f"{name}.{suffix}")
            figure.savefig(paths[-1], metadata=dict.fromkeys(absent))
            figure.set_layout_engine(None)  # keeps the layout of the first file for the second
    return paths

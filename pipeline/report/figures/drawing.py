"""A figure before it is drawn: its tidy data, and the function that draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

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
    # Text stays text: smaller files that a screen reader can read.
    "svg.fonttype": "none",
}
# Dark to light, told apart by eyes without colour vision and on a grey printer.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7a5a00", "#8c8c8c")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 1)), (0, (3, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
_PANEL_INCHES = (3.3, 2.6)
_LEGEND_COLUMNS = 2  # that fit below a panel


@contextmanager
def styled() -> Iterator[None]:
    """Within the block figures are drawn and saved in this style, whatever the user's own."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def line(place: int, n_point: int) -> dict[str, Any]:
    """Colour, dashes and sparse markers of the line at a place in a legend."""
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _DASHES[place % len(_DASHES)],
        "marker": _MARKERS[place % len(_MARKERS)],
        # Shifted from line to line, so that markers do not hide each other.
        "markevery": (place % max(1, n_point // 8), max(1, n_point // 8)),
    }


def outline(place: int) -> dict[str, Any]:
    """The first of overlaid histograms filled in light grey, the others outlined."""
    if place == 0:
        return {"fill": True, "facecolor": "0.8", "edgecolor": "0.5"}
    return {"color": _COLOURS[place], "linestyle": _DASHES[place], "linewidth": 1.4}


def panels(n_panel: int, most_columns: int = 3) -> tuple[Figure, Sequence[Axes]]:
    """A figure of `n_panel` panels side by side, in rows of at most `most_columns`."""
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
    """One legend below all panels, each label once."""
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(_LEGEND_COLUMNS * _columns(axes), len(handles)),
        handlelength=4,
    )


def whole_numbers(axis: Axes) -> None:
    """Ticks of the horizontal axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _columns(axes: Sequence[Axes]) -> int:
    """How many columns of panels a figure has."""
    grid = axes[0].get_gridspec()
    return 1 if grid is None else int(grid.ncols)


Draw = Callable[[pd.DataFrame], "Figure"]


@dataclass(frozen=True)
class Sheet:
    """Title, caption and tidy data of a figure, a row a point, and how it is drawn.

    Without rows there is no picture, and `reason` says why.
    """

    title: str
    caption: str
    data: pd.DataFrame
    draw: Draw
    reason: str = ""


def write_sheet(folder: Path, name: str, sheet: Sheet) -> list[Path]:
    """Write {name}.csv, and {name}.svg and .png where there is something to draw.

    The same data give the same bytes.
    """
    from pipeline.report.figures.drawing import styled

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
            figure.set_layout_engine(None)  # the second file has the layout of the first
    return paths

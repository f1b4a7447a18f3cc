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
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.linewidth": 0.7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
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
    "legend.title_fontsize": 7,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.hashsalt": "figures",
    # Keep text as text: files are smaller, and screen readers can read them.
    "svg.fonttype": "none",
    # Embed TrueType fonts: many publishers refuse Type 3.
    "pdf.fonttype": 42,
}
# Distinguishable with colour blindness and in grey.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7a5a00", "#8c8c8c")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (1, 1)), (0, (3, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
# The same quantity looks the same in all figures: hue is the kind of uncertainty or posterior, and
# dashes are the chain forms. The colours are those of Okabe and Ito, and shades of grey.
_DASHED = (0, (4, 1.5))
_LOOKS: dict[str, tuple[str, Any, str]] = {
    "prex_entropy_s": ("#0072b2", "-", "o"),
    "prex_entropy_c": ("#56b4e9", _DASHED, "s"),
    "prex_rmi_s": ("#d55e00", "-", "^"),
    "prex_rmi_c": ("#e69f00", _DASHED, "D"),
    "prex_mi_c": ("#009e73", _DASHED, "v"),
    "expr_entropy_s": ("#cc79a7", "-", "P"),
    "prex": ("#000000", "-", "o"),
    "expr": ("#882255", _DASHED, "s"),
    "single": ("#8c8c8c", (0, (1, 1)), "^"),
    "oracle": ("#4d4d4d", (0, (1, 1)), ""),
    "random": ("#8c8c8c", "-", ""),
}
# Columns -> size of a panel. Two or three fill the text of a page, about 6.3 inches.
_PANEL_INCHES = {1: (3.15, 2.3), 2: (3.15, 2.1), 3: (2.1, 1.7)}
_LEGEND_COLUMNS_PER_PANEL = 2
# Format -> what would differ from one run or version to the next.
_ABSENT_METADATA = {
    "svg": ("Date", "Creator"),
    "png": ("Software",),
    "pdf": ("CreationDate", "Creator", "Producer"),
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save figures in the style of the report, whatever style the user has set."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def look(name: str) -> dict[str, Any]:
    """Colour, dashes and marker of a measure, a posterior or an order of sentences."""
    color, dashes, marker = _LOOKS[name]
    return {"color": color, "linestyle": dashes, "marker": marker}


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
    """Style of overlaid histograms: the first is filled in light grey, the second is outlined."""
    if index == 0:
        return {"fill": True, "facecolor": "0.8", "edgecolor": "0.5", "linewidth": 0.5}
    return {"color": "#000000", "linewidth": 1.2}


def panels(n_panel: int, most_columns: int = 3) -> tuple[Figure, Sequence[Axes]]:
    """A figure of `n_panel` panels in rows of at most `most_columns`."""
    figure, groups = grouped_panels([n_panel], most_columns, share_y=False)
    return figure, groups[0]


def grouped_panels(
    sizes: Sequence[int], most_columns: int = 3, share_y: bool = True
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a group of panels per size; each group begins a row.

    With `share_y`, the panels of a group have one vertical scale, with labels at the left only.
    """
    from matplotlib.figure import Figure

    n_column = min(max(sizes), most_columns)
    n_rows = [-(-size // n_column) for size in sizes]
    width, height = _PANEL_INCHES[n_column]
    figure = Figure(figsize=(width * n_column, height * sum(n_rows)), layout="constrained")
    grid = figure.subplots(sum(n_rows), n_column, squeeze=False)
    groups: list[list[Axes]] = []
    for size, n_row in zip(sizes, n_rows, strict=True):
        first_row = sum(n_rows[: len(groups)])
        cells = list(grid[first_row : first_row + n_row].ravel())
        for index, axis in enumerate(cells[:size]):
            if share_y and index:
                axis.sharey(cells[0])
                axis.tick_params(labelleft=index % n_column == 0)
        for unused in cells[size:]:
            unused.remove()
        groups.append(cells[:size])
    return figure, groups


def stacked_panels(n_pair: int) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """A figure of pairs of panels with a common horizontal axis: a main one, and a low one below.

    There are at most two pairs in a row.
    """
    from matplotlib.figure import Figure

    n_column, n_row = min(n_pair, 2), -(-n_pair // 2)
    width, height = _PANEL_INCHES[n_column]
    figure = Figure(figsize=(width * n_column, 1.8 * height * n_row), layout="constrained")
    grid = figure.subplots(
        2 * n_row, n_column, squeeze=False, sharex=True, height_ratios=[2.2, 1] * n_row
    )
    pairs = list(zip(grid[::2].ravel(), grid[1::2].ravel(), strict=True))
    for _, low in pairs:
        low.tick_params(labelbottom=True)
    for unused in pairs[n_pair:]:
        for axis in unused:
            axis.remove()
    return figure, pairs[:n_pair]


def label_left(axes: Sequence[Axes], text: str) -> None:
    """Label the vertical axis of the panels in the first column."""
    for axis in axes:
        place = axis.get_subplotspec()
        if place is None or place.is_first_col():
            axis.set_ylabel(text)


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

    axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


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
    """Write each figure as {task}_{name}.csv, .svg, .png and .pdf, listed in {task}_figures.json.

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
    """Write {name}.csv and, unless the data are empty, {name}.svg, {name}.png and {name}.pdf.

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
        for suffix, absent in _ABSENT_METADATA.items():
            paths.append(folder / f"{name}.{suffix}")
            figure.savefig(paths[-1], metadata=dict.fromkeys(absent))
            figure.set_layout_engine(None)  # keeps the layout of the first file for the others
    return paths

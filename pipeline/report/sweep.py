"""Compare the points of a sweep: a CSV file, a Markdown table and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pipeline.metrics.main_numbers import by_importance
from pipeline.report.figures.drawing import line, panels, shared_legend, styled
from pipeline.report.formats import escape_markdown, markdown_table
from pipeline.report.names import number_title
from pipeline.run.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PANELS = 6
_MOST_NUMBERS = 10  # in summary.md
_MOST_TICKS = 8
_LINE = 80  # characters in a line of summary.md
_FOLDER, _REASON = "folder", "reason"
_EXPLAINED = ("prr", "roc_auc")  # numbers whose name does not say of which measure they are
_B_AND_T = """\
In `stages.sweep`, numbers are at the B and T of the point. In `stages.metrics`,
PRR is at B = 1, and ROC-AUC at the largest B and the first T of the point."""


@dataclass(frozen=True)
class Point:
    """One point of a sweep.

    `number` is its position in the sweep, `overrides` maps keys to the requested values, `numbers`
    maps names to the numbers of the main ensemble, and `intervals` maps names to the ends of their
    intervals, where they exist. `reason` says why the point failed; None if it did not. A point
    whose results could not be tracked has a reason and numbers. `folder` holds the results; it is
    relative to that of the summary.
    """

    number: int
    overrides: dict[str, str]
    numbers: dict[str, float]
    reason: str | None = None
    folder: str = ""
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def name(self, keys: Sequence[str]) -> str:
        """The given keys with the requested values."""
        return " ".join(f"{key}={self.overrides[key]}" for key in keys if key in self.overrides)


def swept_keys(points: Sequence[Point]) -> list[str]:
    """The keys whose value differs between points; all keys if there is only one point."""
    values: dict[str, set[str | None]] = {}
    for key in dict.fromkeys(key for point in points for key in point.overrides):
        values[key] = {point.overrides.get(key) for point in points}
    return [key for key, of_key in values.items() if len(of_key) > 1 or len(points) == 1]


def summary(points: Sequence[Point]) -> pd.DataFrame:
    """One row per point, in the order of their numbers: swept keys, numbers, folder, reason.

    The column `reason` exists only if a point failed, and `folder` only if folders are known.
    """
    ordered = sorted(points, key=lambda point: point.number)
    swept = swept_keys(ordered)
    rows = [
        {**{key: _number(point.overrides.get(key)) for key in swept}, **point.numbers}
        for point in ordered
    ]
    names = by_importance(sorted({name for point in points for name in point.numbers}))
    frame = pd.DataFrame(rows, index=range(len(rows)), columns=[*swept, *names])
    if any(point.folder for point in ordered):
        frame[_FOLDER] = [point.folder for point in ordered]
    if any(point.reason for point in ordered):
        frame[_REASON] = [point.reason for point in ordered]
    frame.attrs["swept"] = swept
    frame.attrs["intervals"] = [point.intervals for point in ordered]
    return frame


def summary_text(points: Sequence[Point]) -> str:
    """The summary as Markdown that fits into a terminal.

    Points are columns, and at most ten numbers are rows: first those that differ between points,
    and of these the most important ones. Without numbers, points are rows with their folders.
    """
    frame = summary(points)
    swept, numbers = frame.attrs["swept"], _numbers(frame)
    if numbers:
        varied = [name for name in numbers if frame[name].nunique() > 1]
        shown = [*varied, *(name for name in numbers if name not in varied)][:_MOST_NUMBERS]
        frame["point"] = [str(point) for point in frame.index]
        parts = [*_transposed(frame, [*(swept or ["point"]), *shown])]
        if explained := [name for name in shown if name in _EXPLAINED]:
            lines = (
                f"- {_code(name)}: {', '.join(number_title(name).splitlines())}"
                for name in explained
            )
            parts += ["\n".join(lines), _B_AND_T]
        if len(shown) < len(numbers):
            parts.append(f"All {len(numbers)} numbers of each point are in summary.csv.")
    else:
        shown = [str(name) for name in frame.columns if name in (*swept, _FOLDER)]
        parts = [_table(shown, frame[shown].astype(object).to_numpy().tolist())]
    if any(point.reason for point in points):
        parts.append(f"Failed: {escape_markdown(failures(points))}.")
    return "\n\n".join(parts) + "\n"


def _transposed(frame: pd.DataFrame, names: list[str]) -> Iterator[str]:
    """Tables with a row for each name and a column for each point, as many as a line holds."""
    columns = [[_markdown_text(value) for value in row] for row in frame[names].to_numpy(object)]
    of_names = max(map(len, names)) + len("| ``   |")
    first, width = 0, of_names
    for index, column in enumerate(columns):
        of_point = max(map(len, column)) + len("|    ")
        if width + of_point > _LINE and index > first:
            yield _table_of_columns(names, columns[first:index])
            first, width = index, of_names
        width += of_point
    yield _table_of_columns(names, columns[first:])


def _table_of_columns(names: list[str], columns: list[list[str]]) -> str:
    (heading, *values), *rows = zip(map(_code, names), *columns, strict=True)
    return markdown_table([heading, *values], rows, n_left=1)


def _table(names: list[str], rows: list[list[Any]]) -> str:
    texts = [[_markdown_text(value) for value in row] for row in rows]
    return markdown_table([*map(_code, names)], texts, n_left=len(names))


def _code(name: str) -> str:
    return f"`{name}`"


def _numbers(frame: pd.DataFrame) -> list[str]:
    others = (*frame.attrs["swept"], _FOLDER, _REASON)
    return [str(name) for name in frame.columns if name not in others]


def failures(points: Sequence[Point]) -> str:
    """The failed points with their reasons as text, grouped by reason."""
    swept = swept_keys(points)
    names: dict[str, list[str]] = {}
    for point in sorted(points, key=lambda point: point.number):
        if point.reason is not None:
            names.setdefault(" ".join(point.reason.split()), []).append(point.name(swept))
    return "; ".join(f"{', '.join(of_reason)} ({reason})" for reason, of_reason in names.items())


def write_summary(folder: Path, points: Sequence[Point]) -> list[Path]:
    """Write summary.csv, summary.md and, if a swept key is numeric, summary.svg.

    Returns the paths that were written.
    """
    frame = summary(points)
    written = [folder / "summary.csv", folder / "summary.md"]
    write_atomically(
        written[0], frame.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    )
    write_atomically(written[1], summary_text(points))
    with styled():
        figure = draw(frame)
        path = folder / "summary.svg"
        path.unlink(missing_ok=True)  # it may be of other points
        if figure is not None:
            temporary = path.with_name(".summary.svg")
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
            temporary.replace(path)
            written.append(path)
    return written


def draw(frame: pd.DataFrame) -> Figure | None:
    """Plot the numbers against the numeric swept key with the most values.

    Each combination of the other swept keys is a line, with the intervals of its points, and panels
    of one metric have one scale. Points without numbers are left out. None if no swept key has two
    different numbers.
    """
    swept, numbers = frame.attrs["swept"], _numbers(frame)
    intervals = frame.attrs["intervals"]
    frame = frame.dropna(subset=numbers, how="all")
    numeric = [key for key in swept if pd.api.types.is_numeric_dtype(frame[key])]
    if not numbers or not numeric or frame[numeric].nunique().max() < 2:
        return None
    across = max(numeric, key=lambda key: frame[key].nunique())
    line_keys = [key for key in swept if key != across]
    names = _panels(numbers)
    figure, axes = panels(len(names), most_columns=2)
    first: dict[str, Axes] = {}  # panel of each metric
    for axis, name in zip(axes, names, strict=True):
        metric = name.partition("/")[0]
        if first.setdefault(metric, axis) is not axis:
            axis.sharey(first[metric])
        for index, (label, rows) in enumerate(_lines(frame, line_keys)):
            ordered = rows.sort_values(across)
            style = line(index, len(ordered))
            axis.plot(ordered[across], ordered[name], label=label, **style)
            ends = [(row, *intervals[row][name]) for row in ordered.index if name in intervals[row]]
            if ends:
                at, low, high = zip(*ends, strict=True)
                axis.vlines(ordered.loc[[*at], across], low, high, style["color"], alpha=0.5)
        _show_values(axis, frame[across])
        axis.set(xlabel=across)
        axis.set_title(number_title(name))
    if line_keys:
        shared_legend(figure, axes)
    return figure


def _show_values(axis: Axes, values: pd.Series[Any]) -> None:
    """Label the swept values, at most eight of them; space them evenly if they span decades."""
    if values.gt(0).all() and values.max() >= 10 * values.min():
        axis.set_xscale("log")
        axis.minorticks_off()
    shown = sorted(values.unique())
    shown = shown[:: -(-len(shown) // _MOST_TICKS)]
    axis.set_xticks(shown, [f"{value:g}" for value in shown])


def _lines(frame: pd.DataFrame, line_keys: list[str]) -> list[tuple[str, pd.DataFrame]]:
    if not line_keys:
        return [("", frame)]
    return [
        (", ".join(f"{key} {value}" for key, value in zip(line_keys, values, strict=True)), rows)
        for values, rows in frame.groupby(line_keys)
    ]


def _panels(names: list[str]) -> list[str]:
    """The numbers to plot. Detection comes first, because it depends on temperature and beam."""
    detection = [name for name in names if name.startswith(("roc_auc", "prr"))]
    return [*detection, *(name for name in names if name not in detection)][:_MOST_PANELS]


def _markdown_text(value: Any) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.4g}"
    return "" if value is None else escape_markdown(str(value))


def _number(text: str | None) -> int | float | str | None:
    if text is None:
        return None
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return text

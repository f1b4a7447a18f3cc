"""The points of a sweep beside each other: a CSV, a Markdown table and figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pipeline.report.figures.drawing import line, panels, shared_legend, styled
from pipeline.run.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of a headline's name: the temperature, which in a sweep is a column of its own.
_TEMPERATURE = re.compile(r"_T[0-9.e+-]+$")
_MOST_PANELS = 6
_REASON = "reason"


@dataclass(frozen=True)
class Point:
    """One point: its number in the sweep, key -> value as asked for, name -> headline number.

    reason: why it failed; none where it is done. One that could not be tracked has numbers too.
    """

    number: int
    overrides: dict[str, str]
    headline: dict[str, float]
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def name(self, keys: Sequence[str]) -> str:
        """What people call it: these keys with the values that were asked for."""
        return " ".join(f"{key}={self.overrides[key]}" for key in keys if key in self.overrides)

    def comparable(self) -> dict[str, float]:
        """The headline under names that all points share: without T where there is one of it."""
        short = {name: _TEMPERATURE.sub("", name) for name in self.headline}
        unique = len(set(short.values())) == len(short)
        return {short[name] if unique else name: value for name, value in self.headline.items()}


def swept_keys(points: Sequence[Point]) -> list[str]:
    """The keys whose value differs between points; of one point, all that were given."""
    values: dict[str, set[str | None]] = {}
    for key in dict.fromkeys(key for one in points for key in one.overrides):
        values[key] = {one.overrides.get(key) for one in points}
    return [key for key, found in values.items() if len(found) > 1 or len(points) == 1]


def summary(points: Sequence[Point]) -> pd.DataFrame:
    """One row a point, in the order of their numbers: the swept keys, the numbers, the reason.

    Column reason, last, is there where a point failed.
    """
    ordered = sorted(points, key=lambda one: one.number)
    swept = swept_keys(ordered)
    rows = [
        {**{key: _number(one.overrides.get(key)) for key in swept}, **one.comparable()}
        for one in ordered
    ]
    frame = pd.DataFrame(rows, index=range(len(rows)))
    if any(one.reason for one in ordered):
        frame[_REASON] = [one.reason for one in ordered]
    frame.attrs["swept"] = swept
    return frame


def failures(points: Sequence[Point]) -> str:
    """The points that failed and why, for a sentence: those of one reason together."""
    swept = swept_keys(points)
    names: dict[str, list[str]] = {}
    for one in sorted(points, key=lambda one: one.number):
        if one.reason is not None:
            names.setdefault(" ".join(one.reason.split()), []).append(one.name(swept))
    return "; ".join(f"{', '.join(found)} ({reason})" for reason, found in names.items())


def write_summary(folder: Path, points: Sequence[Point]) -> list[Path]:
    """Write summary.csv, .md and, where a swept key has numbers, .svg; the paths."""
    frame = summary(points)
    written = [folder / "summary.csv", folder / "summary.md"]
    write_atomically(
        written[0], frame.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    )
    write_atomically(written[1], _markdown(frame))
    with styled():
        figure = draw(frame)
        if figure is not None:
            path = folder / "summary.svg"
            temporary = path.with_name(".summary.svg")
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
            temporary.replace(path)
            written.append(path)
    return written


def draw(frame: pd.DataFrame) -> Figure | None:
    """Number against the swept key with most values, a line for each setting of the others.

    None where no swept key has two numbers. Points without numbers are left out.
    """
    swept = frame.attrs["swept"]
    numbers = [str(name) for name in frame.columns if name not in (*swept, _REASON)]
    frame = frame.dropna(subset=numbers, how="all")
    numeric = [key for key in swept if pd.api.types.is_numeric_dtype(frame[key])]
    if not numeric or frame[numeric].nunique().max() < 2:
        return None
    across = max(numeric, key=lambda key: frame[key].nunique())
    others = [key for key in swept if key != across]
    names = _panels(numbers)
    figure, axes = panels(len(names), most_columns=2)
    for axis, name in zip(axes, names, strict=True):
        for place, (label, rows) in enumerate(_lines(frame, others)):
            ordered = rows.sort_values(across)
            axis.plot(ordered[across], ordered[name], label=label, **line(place, len(ordered)))
        if frame[across].gt(0).all() and frame[across].max() >= 10 * frame[across].min():
            axis.set_xscale("log")
        axis.set(title=name, xlabel=across)
    if others:
        shared_legend(figure, axes)
    return figure


def _lines(frame: pd.DataFrame, others: list[str]) -> list[tuple[str, pd.DataFrame]]:
    if not others:
        return [("", frame)]
    return [
        (", ".join(f"{key} {value}" for key, value in zip(others, values, strict=True)), rows)
        for values, rows in frame.groupby(others)
    ]


def _panels(names: list[str]) -> list[str]:
    """Detection numbers first: they are what a temperature or a beam moves."""
    detection = [name for name in names if "/roc_auc" in name or "/prr" in name]
    return [*detection, *(name for name in names if name not in detection)][:_MOST_PANELS]


def _markdown(frame: pd.DataFrame) -> str:
    lines = ["| " + " | ".join(map(str, frame.columns)) + " |"]
    lines.append("|" + " ---: |" * len(frame.columns))
    rows = frame.itertuples(index=False)
    lines += ["| " + " | ".join(map(_shown, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.4g}"
    return "" if value is None else " ".join(str(value).split()).replace("|", "\\|")


def _number(text: str | None) -> int | float | str | None:
    if text is None:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

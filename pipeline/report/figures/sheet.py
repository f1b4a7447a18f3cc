"""A figure before it is drawn: its tidy data, and the function that draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    from pipeline.report.figures.style import styled

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

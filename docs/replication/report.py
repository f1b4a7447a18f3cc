"""Draw the figures of the replication study and list its verdicts.

`python -m docs.replication.report` makes the SVG files and claims.md of this folder from
points.csv, numbers.csv and claims.csv, which run.py writes. Points that were not made are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.report.figures.drawing import (
    grouped_panels,
    label_left,
    look,
    shared_legend,
    styled,
)
from pipeline.report.names import short_label
from pipeline.report.paper_claims import claims_of_our_own, claims_of_the_paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FOLDER = Path(__file__).resolve().parent
_TASKS = {"nmt_ende": "EN-DE", "nmt_enfr": "EN-FR", "asr": "ASR"}
# Task -> the beginning of its trainings' names, and the set whose source is in its target language.
_PAIRS = {"nmt_ende": ("ende", "german-source"), "nmt_enfr": ("enfr", "french-source")}
_MEASURES = ("prex_entropy_c", "prex_entropy_s", "prex_rmi_c", "prex_rmi_s")
_DETECTED = (
    "debian-reference",
    "fish-fillets",
    "french-source",
    "german-source",
    "typos",
    "permuted",
)


@dataclass(frozen=True)
class Place:
    """A tick of the horizontal axis, and the point of the study above it."""

    label: str
    training: str
    point: str = "base"
    temperature: str = "10"


def main() -> None:
    """Write all figures and claims.md."""
    points, numbers, claims = (
        pd.read_csv(FOLDER / f"{name}.csv", low_memory=False, dtype={"T": str, "B": str})
        for name in ("points", "numbers", "claims")
    )
    for name, draw in FIGURES.items():
        with styled():
            draw(numbers).savefig(FOLDER / f"{name}.svg", metadata={"Date": None, "Creator": None})
    (FOLDER / "claims.md").write_text(verdicts(points, claims), encoding="utf-8")


def copies(numbers: pd.DataFrame) -> Figure:
    """ROC-AUC of sources in the target language against the share of copies in training."""
    figure, groups = grouped_panels([2, 2])
    for panels, places in zip(groups, (_shares, _sides), strict=True):
        for axis, (pair, test_set) in zip(panels, _PAIRS.values(), strict=True):
            _draw_detection(axis, numbers, places(pair), test_set)
            axis.axhline(50, color="0.5", linewidth=0.8)
            axis.set_title(f"{pair[:2].upper()}-{pair[2:].upper()}, {test_set}")
    for axis in groups[0]:
        axis.set_xlabel("copies of source and of target, percent each")
    for axis in groups[1]:
        axis.set_xlabel("sides of which there are 5 % of copies")
    return _finished(figure, [*groups[0], *groups[1]])


def strength(numbers: pd.DataFrame) -> Figure:
    """ROC-AUC of every out-of-domain set against the length of training and the width."""
    lengths = [
        Place("400", "ende-updates-400"),
        Place("1,600", "ende"),
        Place("6,400", "ende-updates-6400"),
        Place("1,600,\nwidth 256", "ende-width-256"),
    ]
    return _by_test_set(numbers, lengths, "updates of each member")


def members(numbers: pd.DataFrame) -> Figure:
    """ROC-AUC of every out-of-domain set against the number of members."""
    counts = [Place(f"{n}", "ende", "base" if n == 4 else f"members-{n}") for n in (2, 3, 4, 6, 10)]
    return _by_test_set(numbers, counts, "members")


def beam(numbers: pd.DataFrame) -> Figure:
    """ROC-AUC of every out-of-domain set against the beam, over all of its hypotheses."""
    beams = [Place(f"{n}", "ende", "base" if n == 5 else f"beam-{n}") for n in (1, 3, 5, 10, 20)]
    return _by_test_set(numbers, beams, "beam")


def temperature(numbers: pd.DataFrame) -> Figure:
    """ROC-AUC of every out-of-domain set against the temperature of the importance weights."""
    values = ("0.5", "1", "2", "5", "10", "20")
    temperatures = [Place(value, "ende", temperature=value) for value in values]
    return _by_test_set(numbers, temperatures, "importance temperature T")


def _by_test_set(numbers: pd.DataFrame, places: Sequence[Place], label: str) -> Figure:
    figure, (panels,) = grouped_panels([len(_DETECTED)])
    for axis, test_set in zip(panels, _DETECTED, strict=True):
        _draw_detection(axis, numbers, places, test_set)
        axis.set_title(test_set)
        axis.set_xlabel(label)
    return _finished(figure, panels)


def _shares(pair: str) -> list[Place]:
    return [Place("0", pair), *(Place(f"{n}", f"{pair}-both-{n}") for n in (1, 2, 5, 10))]


def _sides(pair: str) -> list[Place]:
    return [
        Place("none", pair),
        Place("source", f"{pair}-source-5"),
        Place("target", f"{pair}-target-5"),
        Place("both", f"{pair}-both-5"),
        Place("third\nlanguage", f"{pair}-third-5"),
    ]


def _draw_detection(
    axis: Axes, numbers: pd.DataFrame, places: Sequence[Place], test_set: str
) -> None:
    """Draw the ROC-AUC of each measure with its interval, over the whole beam."""
    cells = numbers[
        (numbers["metric"] == "roc_auc")
        & (numbers["test_set"] == test_set)
        & (numbers["ensemble"] == "random_init")
        & (numbers["hypotheses"] == "prex")
        & (numbers["regime"] == "beam")
    ]
    axis.set_xticks(range(len(places)), [place.label for place in places])
    axis.set_xlim(-0.5, len(places) - 0.5)
    for index, measure in enumerate(_MEASURES):
        rows = [
            (position, row)
            for position, place in enumerate(places)
            for row in _cells_at(cells, place, measure)
        ]
        at = [position + 0.06 * (index - 1.5) for position, _ in rows]
        value, low, high = ([row[name] for _, row in rows] for name in ("value", "low", "high"))
        axis.plot(at, value, label=short_label(measure), **look(measure))
        axis.vlines(at, low, high, color=look(measure)["color"], linewidth=0.8)


def _cells_at(cells: pd.DataFrame, place: Place, measure: str) -> list[dict[str, float]]:
    """Return the cell of a measure at a point; none if the point was not made."""
    rows = cells[
        (cells["training"] == place.training)
        & (cells["point"] == place.point)
        & (cells["T"].astype(float) == float(place.temperature))
        & (cells["column"] == measure)
    ]
    return rows.to_dict("records")


def _finished(figure: Figure, panels: Sequence[Axes]) -> Figure:
    label_left(panels, "ROC-AUC, percent")
    shared_legend(figure, panels)
    return figure


FIGURES: Mapping[str, Callable[[pd.DataFrame], Figure]] = {
    "copies": copies,
    "strength": strength,
    "members": members,
    "beam": beam,
    "temperature": temperature,
}


def verdicts(points: pd.DataFrame, claims: pd.DataFrame) -> str:
    """Return a table of the verdicts at the base of each task, and the points with another verdict.

    claims: one row per point, claim and group of test sets; those on the paper's sets are used.
    """
    known = claims_of_the_paper() | claims_of_our_own()
    claims = claims.merge(points[["training", "point", "task"]], on=["training", "point"])
    claims = claims.drop_duplicates(["training", "point", "claim"])
    lines = [
        "| claim | task | verdict | difference [95 % interval] | holds at | does not hold at |",
        "|---|---|---|---:|---|---|",
    ]
    for claim, description in known.items():
        for task, label in _TASKS.items():
            rows = claims[(claims["claim"] == claim) & (claims["task"] == task)]
            base = rows[(rows["training"] == task.removeprefix("nmt_")) & (rows["point"] == "base")]
            if base.empty:
                continue
            (row,) = base.to_dict("records")
            others = rows.drop(base.index)
            columns = [
                description.statement,
                label,
                row["verdict"],
                f"{row['value']:.1f} [{row['low']:.1f}, {row['high']:.1f}]",
                *(_others(others, row["verdict"], other) for other in ("holds", "does not hold")),
            ]
            lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def _others(rows: pd.DataFrame, base: str, verdict: str) -> str:
    """The points with a verdict that is not the base's, with their differences."""
    if verdict == base:
        return ""
    rows = rows[rows["verdict"] == verdict]
    names = rows["training"] + (" " + rows["point"]).where(rows["point"] != "base", "")
    pairs = zip(names, rows["value"], strict=True)
    return "; ".join(f"{name} ({value:.1f})" for name, value in pairs)


if __name__ == "__main__":
    main()

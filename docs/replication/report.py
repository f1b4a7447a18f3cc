"""Draw the figures of the replication study and list its verdicts.

`python -m docs.replication.report` makes the SVG files, claims.md and points.md of this folder from
points.csv, numbers.csv and claims.csv, which run.py writes. Points that were not made are left out,
and so are figures with fewer than two places to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from docs.replication.run import points as all_points
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
# Beginning of the trainings' names -> the set whose source is in the target language, decoded, and
# forced to be a copy of that source; and the set whose source is in a third language.
_PAIRS = {
    "ende": ("german-source", "german-german", "french-source"),
    "enfr": ("french-source", "french-french", "german-source"),
}
_MEASURES = ("prex_entropy_c", "prex_entropy_s", "prex_rmi_c", "prex_rmi_s")
_DETECTED = (
    "debian-reference",
    "fish-fillets",
    "french-source",
    "german-source",
    "typos",
    "permuted",
)
_DETECTED_SPEECH = ("commands-noisy", "fish-fillets", "french-prompts")


@dataclass(frozen=True)
class Place:
    """A tick of the horizontal axis, what is drawn there, and whether a line leads to it."""

    label: str
    training: str
    point: str = "base"
    ensemble: str = "random_init"
    hypotheses: str = "prex"
    temperature: float = 10
    joined: bool = True


def main() -> None:
    """Write all figures, claims.md and points.md."""
    points, numbers, claims = (
        pd.read_csv(FOLDER / f"{name}.csv", low_memory=False)
        for name in ("points", "numbers", "claims")
    )
    for name, draw in FIGURES.items():
        with styled():
            figure = draw(numbers)
            if figure is not None:
                metadata = {"Date": None, "Creator": None}
                figure.savefig(FOLDER / f"{name}.svg", metadata=metadata)
    (FOLDER / "claims.md").write_text(verdicts(points, claims), encoding="utf-8")
    (FOLDER / "points.md").write_text(overview(points, numbers), encoding="utf-8")


def copies(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of sources in the target language against the share of copies in training."""
    return _by_pair(numbers, _shares, "copies of source and of target, % each")


def sides(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of sources in the target and a third language against the language of the copies."""
    return _by_pair(numbers, _sides, "language of 5 % copies", has_third=True)


def strength(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of every out-of-domain set against the length of training, width and sentences."""
    places = [
        *_lengths("ende"),
        Place("wide", "ende-width-256", joined=False),
        Place("wide,\n½ rate", "ende-width-256-half-rate", joined=False),
        Place("long", "ende-words-40", joined=False),
    ]
    return _by_test_set(numbers, places, "updates of each member")


def strength_with_copies(numbers: pd.DataFrame) -> Figure | None:
    """The same for the length of training, with 2 % copies of source and of target."""
    return _by_test_set(numbers, _lengths("ende-both-2"), "updates of each member")


def speech(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of every out-of-domain set of speech against the length of training."""
    places = _lengths("asr", temperature=1)
    return _by_test_set(numbers, places, "updates of each member", _DETECTED_SPEECH)


def members(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of every out-of-domain set against the number of members."""
    counts = [Place(f"{n}", "ende", "base" if n == 4 else f"members-{n}") for n in (2, 3, 4, 6, 10)]
    return _by_test_set(numbers, counts, "members")


def ensembles(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of every out-of-domain set against the kind of the ensemble."""
    kinds = [
        Place("random\ninit", "ende"),
        Place("check-\npoints", "ende", ensemble="checkpoint"),
        Place("MC\ndropout", "ende", ensemble="mc_dropout"),
        Place("snap-\nshots", "ende-snapshots", ensemble="snapshot"),
    ]
    kinds = [replace(kind, joined=False) for kind in kinds]
    return _by_test_set(numbers, kinds, "ensemble of four members")


def beam(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of every out-of-domain set against the beam, over all of its hypotheses."""
    beams = [Place(f"{n}", "ende", "base" if n == 5 else f"beam-{n}") for n in (1, 5, 20)]
    return _by_test_set(numbers, beams, "beam")


def temperature(numbers: pd.DataFrame) -> Figure | None:
    """ROC-AUC of every out-of-domain set against the temperature of the importance weights."""
    temperatures = [Place(f"{t:g}", "ende", temperature=t) for t in (0.5, 1, 2, 5, 10, 20)]
    return _by_test_set(numbers, temperatures, "importance temperature T")


FIGURES: Mapping[str, Callable[[pd.DataFrame], Figure | None]] = {
    figure.__name__: figure
    for figure in (
        *(copies, sides, strength, strength_with_copies, speech),
        *(members, ensembles, beam, temperature),
    )
}


def _shares(pair: str) -> list[Place]:
    return [Place("0", pair), *(Place(f"{n}", f"{pair}-both-{n}") for n in (1, 2, 5, 10))]


def _sides(pair: str) -> list[Place]:
    names = {side: f"{pair}-{side}-5" for side in ("source", "target", "both", "third")}
    return [Place(side, name, joined=False) for side, name in {"none": pair, **names}.items()]


def _lengths(training: str, temperature: float = 10) -> list[Place]:
    names = {"400": f"{training}-updates-400", "1,600": training}
    names["6,400"] = f"{training}-updates-6400"
    return [Place(label, name, temperature=temperature) for label, name in names.items()]


def _by_pair(
    numbers: pd.DataFrame,
    places: Callable[[str], list[Place]],
    label: str,
    has_third: bool = False,
) -> Figure | None:
    """Panels of each pair: input in the target language, decoded and as a forced copy.

    has_third: also input in a third language, decoded.
    """
    panels = {}
    for pair, (foreign, copy, third) in _PAIRS.items():
        made = _made(numbers, places(pair))
        task = f"{pair[:2].upper()}-{pair[2:].upper()}"
        sets = {foreign: "prex", copy: "reference"} | ({third: "prex"} if has_third else {})
        for test_set, hypotheses in sets.items():
            if len(made) > 1:
                panel = [replace(place, hypotheses=hypotheses) for place in made]
                panels[f"{task}, {test_set}"] = panel
    return _panels(numbers, panels, label)


def _by_test_set(
    numbers: pd.DataFrame,
    places: Sequence[Place],
    label: str,
    test_sets: Sequence[str] = _DETECTED,
) -> Figure | None:
    """One panel per test set."""
    made = _made(numbers, places)
    return _panels(numbers, {name: made for name in test_sets if len(made) > 1}, label)


def _made(numbers: pd.DataFrame, places: Sequence[Place]) -> list[Place]:
    points = {*zip(numbers["training"], numbers["point"], strict=True)}
    return [place for place in places if (place.training, place.point) in points]


def _panels(
    numbers: pd.DataFrame, panels: Mapping[str, Sequence[Place]], label: str
) -> Figure | None:
    """One panel per title, which ends with the test set; None if there is none."""
    if not panels:
        return None
    figure, (axes,) = grouped_panels([len(panels)], most_columns=2 if len(panels) < 5 else 3)
    for axis, (title, places) in zip(axes, panels.items(), strict=True):
        _draw_detection(axis, numbers, places, title.rsplit(" ", 1)[-1])
        axis.set_title(title)
        axis.set_xlabel(label)
    label_left(axes, "ROC-AUC, percent")
    shared_legend(figure, axes)
    return figure


def _draw_detection(
    axis: Axes, numbers: pd.DataFrame, places: Sequence[Place], test_set: str
) -> None:
    """Draw the ROC-AUC of each measure with its interval, over the whole beam."""
    axis.set_xticks(range(len(places)), [place.label for place in places])
    axis.set_xlim(-0.5, len(places) - 0.5)
    axis.axhline(50, color="0.5", linewidth=0.8)
    for index, measure in enumerate(_MEASURES):
        ats, values = [], []
        for position, place in enumerate(places):
            cell = _cell(numbers, place, test_set, measure)
            if cell is None:
                continue
            at = position + 0.06 * (index - 1.5)
            axis.vlines(at, cell["low"], cell["high"], color=look(measure)["color"], linewidth=0.8)
            if not place.joined:
                ats.append(at)
                values.append(math.nan)  # ends the line
            ats.append(at)
            values.append(cell["value"])
        axis.plot(ats, values, label=short_label(measure), **look(measure))


def _cell(
    numbers: pd.DataFrame, place: Place, test_set: str, column: str, metric: str = "roc_auc"
) -> dict[str, float] | None:
    """Return the cell of a measure at a point; None if the point was not made.

    Cells of forced hypotheses, and of quality, have no temperature.
    """
    rows = numbers[
        (numbers["metric"] == metric)
        & (numbers["test_set"] == test_set)
        & (numbers["ensemble"] == place.ensemble)
        & (numbers["hypotheses"] == place.hypotheses)
        & (numbers["training"] == place.training)
        & (numbers["point"] == place.point)
        & numbers["T"].fillna(place.temperature).eq(place.temperature)
        & (numbers["column"] == column)
    ]
    if rows.empty:
        return None
    (row,) = rows.to_dict("records")
    return row


def verdicts(points: pd.DataFrame, claims: pd.DataFrame) -> str:
    """Return a table of the verdicts at the base of each task, and the points with another verdict.

    claims: one row per point, claim and group of test sets; the first group at the base is used,
    which is that of the paper for a claim that the paper makes about the task.
    """
    known = claims_of_the_paper() | claims_of_our_own()
    claims = claims.merge(points[["training", "point", "task"]], on=["training", "point"])
    lines = [
        "# Verdicts on the paper's claims",
        "",
        "The verdict at the base of each task, and the points at which it turns to *holds* or to "
        "*does not hold*. Measures over a beam use its first 5 hypotheses, in speech its first 20.",
        "",
        "| claim | task | test sets | verdict | difference [95 % interval] | holds at "
        "| does not hold at |",
        "|---|---|---|---|---:|---|---|",
    ]
    for claim, description in known.items():
        for task, label in _TASKS.items():
            rows = claims[(claims["claim"] == claim) & (claims["task"] == task)]
            is_base = (rows["training"] == task.removeprefix("nmt_")) & (rows["point"] == "base")
            if not is_base.any():
                continue
            row = rows[is_base].iloc[0].to_dict()
            others = rows[~is_base & rows["test_sets"].eq(row["test_sets"])]
            columns = [
                description.statement,
                label,
                str(row["test_sets"]).replace(";", ", "),
                row["verdict"],
                _interval(row),
                *(_others(others, row["verdict"], other) for other in ("holds", "does not hold")),
            ]
            lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def _interval(row: Mapping[str, Any]) -> str:
    digits = 3 if row["metric"] == "nll" else 1
    value, low, high = (f"{row[name]:.{digits}f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _others(rows: pd.DataFrame, base: str, verdict: str) -> str:
    """The points with a verdict that is not the base's, with their differences."""
    if verdict == base:
        return ""
    rows = rows[rows["verdict"] == verdict]
    names = rows["training"] + (" " + rows["point"]).where(rows["point"] != "base", "")
    pairs = zip(names, rows["value"], strict=True)
    return "; ".join(f"{name} ({value:.1f})" for name, value in pairs)


def overview(points: pd.DataFrame, numbers: pd.DataFrame) -> str:
    """Return a table with one row per point: its main numbers and minutes.

    Quality and PRR are those of `help` and `commands`. The next three columns are about input in
    the target language. A sentence above the table counts the points.
    """
    lines = [
        "# Points of the replication study",
        "",
        f"{len(points)} of the {len(all_points())} points of study.yaml have been made.",
        "",
        "| training | point | BLEU or WER | PRR of H S-IW | copied, % | ROC-AUC of H S-IW "
        "| ROC-AUC of RMI S-IW | minutes |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in points.to_dict("records"):
        place = Place("", row["training"], row["point"], _ensemble(row))
        is_speech = row["task"] == "asr"
        seconds = sum(row[name] for name in points if name.endswith("_seconds"))
        test_set = "commands" if is_speech else "help"
        quality = "wer_percent" if is_speech else "bleu"
        cells = [(test_set, quality, quality), (test_set, "prex_entropy_s", "prr")]
        if not is_speech:
            foreign, *_ = _PAIRS[row["task"].removeprefix("nmt_")]
            cells += [(foreign, "copy_through", "copied_percent")]
            cells += [(foreign, name, "roc_auc") for name in ("prex_entropy_s", "prex_rmi_s")]
        columns = [
            row["training"],
            row["point"],
            *(_text(_cell(numbers, place, *cell)) for cell in cells),
            *([""] * (5 - len(cells))),
            f"{seconds / 60:.0f}",
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def _ensemble(point: Mapping[str, Any]) -> str:
    """The kind of the main ensemble of a row of points.csv."""
    kind = point.get("ensemble")
    return kind if isinstance(kind, str) else "random_init"


def _text(cell: Mapping[str, float] | None) -> str:
    return "" if cell is None else f"{cell['value']:.1f}"


if __name__ == "__main__":
    main()

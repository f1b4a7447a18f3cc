"""Headings of columns of measures: short names, mathematical ones, and the groups over them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.report.measure_names import ESTIMATORS, KINDS, OTHERS, POSTERIORS
from pipeline.report.table import Heading


def measure_header(
    labels: Sequence[str], columns: Sequence[str], beam: str
) -> tuple[tuple[Heading, ...], ...]:
    """Two rows of headings: groups of measures, then measures; `beam` is `1` or `B`."""
    return (
        (*(Heading(label) for label in labels), *spans([_group(name) for name in columns])),
        (*(Heading("") for _ in labels), *(_measure(name, beam) for name in columns)),
    )


def spans(names: Sequence[str]) -> list[Heading]:
    """Headings over runs of equal names."""
    headings: list[Heading] = []
    for name in names:
        if headings and headings[-1].text == name:
            headings[-1] = Heading(name, headings[-1].span + 1)
        else:
            headings.append(Heading(name))
    return headings


def _group(column: str) -> str:
    if column in OTHERS:
        return OTHERS[column].group
    posterior, kind = column.split("_")[:2]
    return f"{POSTERIORS[posterior]}, {KINDS[kind].uncertainty}"


def _measure(column: str, beam: str) -> Heading:
    if column in OTHERS:
        return Heading(OTHERS[column].heading, latex=OTHERS[column].latex)
    _, kind, *estimator = column.split("_")
    letter = KINDS[kind].letter
    if estimator:
        way = ESTIMATORS[estimator[0]]
        latex = rf"$\hat{{\mathcal{{{letter}}}}}^{{({beam})}}_{{\mathrm{{{way}}}}}$"
        return Heading(f"{letter} {way}", latex=latex)
    if kind == "pmi":
        return Heading("M of the token", latex=rf"$\mathcal{{{letter}}}_{{\omega_l}}$")
    return Heading(letter, latex=rf"$\mathcal{{{letter}}}$")

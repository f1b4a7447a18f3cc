"""Headings of columns of measures: short names, mathematical ones, and the groups over them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.report.measure_names import KINDS, OTHERS, parts_of
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
    """The group of a measure; a name that is not the paper's has none."""
    if column in OTHERS:
        return OTHERS[column].group
    parts = parts_of(column)
    return "" if parts is None else f"{parts.posterior}, {parts.kind.uncertainty}"


def _measure(column: str, beam: str) -> Heading:
    if column in OTHERS:
        return Heading(OTHERS[column].heading, latex=OTHERS[column].latex)
    parts = parts_of(column)
    if parts is None:
        return Heading(column)
    letter, remark = parts.kind.letter, parts.kind.remark
    if parts.estimator is not None:
        symbol = rf"\hat{{\mathcal{{{letter}}}}}^{{({beam})}}_{{\mathrm{{{parts.estimator}}}}}"
        return Heading(f"{letter} {parts.estimator}{remark}", latex=f"${symbol}${remark}")
    if parts.kind is KINDS["pmi"]:
        return Heading("M of the token", latex=rf"$\mathcal{{{letter}}}_{{\omega_l}}$")
    return Heading(f"{letter}{remark}", latex=rf"$\mathcal{{{letter}}}${remark}")

"""Headings of columns of measures: short names, mathematical ones, and the groups over them."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.metrics.cell import COPY_THROUGH
from pipeline.report.table import Heading

_POSTERIORS = {"prex": "PrEx", "expr": "ExPr"}
_LETTERS = {"entropy": "H", "score": "P", "mi": "I", "epkl": "K", "rmi": "M", "pmi": "M"}
_TOTAL = ("entropy", "score")
_ESTIMATORS = {"c": "C-IW", "s": "S-IW"}
# Columns that are no information-theoretic measure: text, mathematical form, group.
_OTHERS = {
    "var_p": ("V[P], not length-normalised", r"$\mathbb{V}^{(B)}[P]$", "Heuristic"),
    "var_p_ln": ("V[P]", r"$\hat{\mathbb{V}}^{(B)}[P]$", "Heuristic"),
    "var_logp": (
        "V[ln P], not length-normalised",
        r"$\mathbb{V}^{(B)}[\ln P]$",
        "Heuristic",
    ),
    "var_logp_ln": ("V[ln P]", r"$\hat{\mathbb{V}}^{(B)}[\ln P]$", "Heuristic"),
    "xbleu": ("X-BLEU", None, "Heuristic"),
    "xwer": ("X-WER", None, "Heuristic"),
    "token_error_rate_percent": ("% TER", None, ""),
    COPY_THROUGH: ("Copied share", None, "Beyond the paper"),
}


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
    if column in _OTHERS:
        return _OTHERS[column][2]
    posterior, kind = column.split("_")[:2]
    return f"{_POSTERIORS[posterior]}, {'total' if kind in _TOTAL else 'knowledge'}"


def _measure(column: str, beam: str) -> Heading:
    if column in _OTHERS:
        text, latex, _ = _OTHERS[column]
        return Heading(text, latex=latex)
    _, kind, *estimator = column.split("_")
    letter = _LETTERS[kind]
    if estimator:
        way = _ESTIMATORS[estimator[0]]
        latex = rf"$\hat{{\mathcal{{{letter}}}}}^{{({beam})}}_{{\mathrm{{{way}}}}}$"
        return Heading(f"{letter} {way}", latex=latex)
    if kind == "pmi":
        return Heading("M of the token", latex=rf"$\mathcal{{{letter}}}_{{\omega_l}}$")
    return Heading(letter, latex=rf"$\mathcal{{{letter}}}$")

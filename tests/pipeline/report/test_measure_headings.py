from __future__ import annotations

import pytest

from pipeline.report.names import measure_header
from pipeline.uncertainty.measures_of_sequences import SEQUENCE_MEASURES
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES


@pytest.mark.parametrize(
    ("column", "group", "heading", "latex"),
    [
        (
            "prex_rmi_s",
            "PrEx, knowledge",
            "M S-IW",
            r"$\hat{\mathcal{M}}^{(B)}_{\mathrm{S-IW}}$",
        ),
        (
            "expr_mi_w_c",
            "ExPr, knowledge",
            "I C-IW, exact",
            r"$\hat{\mathcal{I}}^{(B)}_{\mathrm{C-IW}}$, exact",
        ),
        ("expr_epkl_w", "ExPr, knowledge", "K, exact", r"$\mathcal{K}$, exact"),
        ("prex_entropy", "PrEx, total", "H", r"$\mathcal{H}$"),
        ("prex_pmi", "PrEx, knowledge", "M of the token", r"$\mathcal{M}_{\omega_l}$"),
        ("xbleu", "Heuristic", "X-BLEU", None),
        ("source_words", "", "source_words", None),
    ],
)
def test_headings_of_a_measure(column: str, group: str, heading: str, latex: str | None) -> None:
    groups, measures = measure_header(["Task"], [column], "B")
    assert [heading.text for heading in groups] == ["Task", group]
    assert (measures[1].text, measures[1].latex) == (heading, latex)


def test_every_measure_has_headings() -> None:
    names = [*SEQUENCE_MEASURES, *TOKEN_MEASURES]
    _, measures = measure_header([], names, "B")
    assert len(measures) == len(names)

"""Titles of the numbers in the figure of a sweep."""

from __future__ import annotations

import pytest

from pipeline.report.figures.drawing import styled
from pipeline.report.names import number_title
from pipeline.report.sweep import Point, draw, summary


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("prr", "PRR of H S-IW (PrEx)\nin-domain, main ensemble"),
        ("roc_auc", "ROC-AUC of M S-IW (PrEx)\nmean over the other test sets"),
        ("roc_auc/typos", "ROC-AUC of M S-IW (PrEx)\ntypos"),
        ("bleu_single", "BLEU\nin-domain, single members"),
        ("wer_percent/commands", "WER %\ncommands"),
        ("aupr/a", "AUPR of P (PrEx)\na"),
        ("mine", "mine\nin-domain, main ensemble"),
    ],
)
def test_title_of_a_number(name: str, title: str) -> None:
    assert number_title(name) == title


def test_panels_of_a_sweep_have_titles_without_keys() -> None:
    name = "prr"
    points = [Point(index, {"decode.beam": str(index + 1)}, {name: 50.0}) for index in range(2)]
    with styled():
        figure = draw(summary(points))
    assert figure is not None
    assert figure.axes[0].get_title("left") == number_title(name)

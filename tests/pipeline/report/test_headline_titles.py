"""Titles of headline numbers in the figure of a sweep."""

from __future__ import annotations

import pytest

from pipeline.report.figures.drawing import styled
from pipeline.report.names import headline_title
from pipeline.report.sweep import Point, draw, summary


@pytest.mark.parametrize(
    ("name", "title"),
    [
        (
            "help/random_init_prex/prr_prex_entropy_s_B1",
            "PRR of H S-IW (PrEx), B = 1\nhelp, random_init PrEx",
        ),
        (
            "typos/checkpoint_expr/roc_auc_prex_rmi_s_B5_T0.5",
            "ROC-AUC of M S-IW (PrEx), B = 5, T = 0.5\ntypos, checkpoint ExPr",
        ),
        (
            "help/random_init_prex/prr_prex_entropy_s",
            "PRR of H S-IW (PrEx)\nhelp, random_init PrEx",
        ),
        (
            "typos/random_init_reference/roc_auc_prex_rmi_s_B1",
            "ROC-AUC of M S-IW (PrEx), B = 1\ntypos, random_init teacher forcing",
        ),
        ("help/checkpoint_average/bleu", "BLEU\nhelp, checkpoint_average"),
        ("commands/random_init_prex/wer_percent", "WER %\ncommands, random_init PrEx"),
        ("a/random_init_prex/aupr_prex_score", "AUPR of P (PrEx)\na, random_init PrEx"),
        ("help/single/mine_B1", "mine, B = 1\nhelp, single"),
        ("other", "other"),
    ],
)
def test_title_of_a_headline_number(name: str, title: str) -> None:
    assert headline_title(name) == title


def test_panels_of_a_sweep_have_titles_without_keys() -> None:
    name = "help/random_init_prex/prr_prex_entropy_s_B1"
    points = [Point(index, {"decode.beam": str(index + 1)}, {name: 50.0}) for index in range(2)]
    with styled():
        figure = draw(summary(points))
    assert figure is not None
    assert figure.axes[0].get_title("left") == headline_title(name)

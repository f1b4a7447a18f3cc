"""The numbers that people compare have short names that are the same for all settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.metrics.cell import Cell
from pipeline.metrics.main_numbers import headline, main_intervals, main_numbers

CELL = Cell("nmt_ende", "help", "random_init", "prex", "beam", value=7.0)
ROC_AUC = replace(CELL, test_set="permuted", metric="roc_auc", column="prex_rmi_s", T="10", B="5")


def numbers(*cells: Cell, temperature: float = 10) -> dict[str, float]:
    return main_numbers(cells, "random_init", "help", temperature)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"column": "bleu", "metric": "bleu"}, "bleu"),
        ({"column": "nll", "metric": "nll", "regime": "teacher_forcing"}, "nll"),
        ({"column": "bleu", "metric": "bleu", "test_set": "typos"}, "bleu/typos"),
        (
            {"column": "bleu", "metric": "bleu", "ensemble": "single", "hypotheses": "-"},
            "bleu_single",
        ),
        ({"column": "prex_entropy_s", "metric": "prr", "B": "1"}, "prr"),
        ({"column": "copy_through", "metric": "copied_percent"}, "copied_percent"),
        ({"column": "prex_score", "metric": "aupr"}, "aupr"),
        ({"column": "token_error_rate_percent", "metric": "percent"}, "token_error_rate_percent"),
        ({"column": "comet", "metric": "comet"}, "comet"),
    ],
)
def test_name_of_a_number(changes: dict[str, str], name: str) -> None:
    cell = replace(CELL, **changes)  # type: ignore[arg-type]
    assert numbers(cell) == {name: 7.0}
    assert numbers(replace(cell, value=0.0)) == {name: 0.0}
    assert numbers(replace(cell, value=None), replace(cell, length_norm="false")) == {}


def test_intervals_are_those_of_the_numbers_that_have_one() -> None:
    with_interval = replace(CELL, column="bleu", metric="bleu", low=6.0, high=8.0)
    cells = [with_interval, replace(CELL, column="nll", metric="nll", regime="teacher_forcing")]
    assert main_intervals(cells, "random_init", "help", 10) == {"bleu": (6.0, 8.0)}


@pytest.mark.parametrize(
    "changes",
    [
        {"column": "prex_entropy_c", "metric": "prr"},
        {"column": "prex_entropy_s", "metric": "roc_auc"},
        {"column": "wrong_words_percent", "metric": "percent"},
        {"column": "bleu", "metric": "bleu", "ensemble": "checkpoint"},
        {"column": "prex_rmi_s", "metric": "roc_auc", "hypotheses": "reference"},
    ],
)
def test_other_cells_give_no_number(changes: dict[str, str]) -> None:
    assert numbers(replace(CELL, **changes)) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [10, 7])
def test_names_have_neither_b_nor_t_and_values_are_those_of_the_first_t_and_the_largest_b(
    temperature: int,
) -> None:
    grid = [
        replace(ROC_AUC, T=t, B=b, value=float(t) + float(b))
        for t in ("1", str(temperature))
        for b in ("5", "20", "1")
    ]
    expected = {"roc_auc": temperature + 20, "roc_auc/permuted": temperature + 20}
    assert numbers(*grid, temperature=temperature) == expected


def test_prex_is_preferred_to_expr_which_is_there_alone_otherwise() -> None:
    expr = replace(CELL, hypotheses="expr", column="bleu", metric="bleu", value=1.0)
    prex = replace(expr, hypotheses="prex", value=2.0)
    assert numbers(prex, expr) == numbers(expr, prex) == {"bleu": 2.0}
    assert numbers(expr) == {"bleu": 1.0}


def test_headline_is_the_in_domain_set_and_the_mean_of_roc_auc() -> None:
    cells = [
        replace(CELL, column="chrf", metric="chrf"),
        replace(CELL, column="bleu", metric="bleu", test_set="typos"),
        replace(CELL, column="bleu", metric="bleu", ensemble="single", hypotheses="-"),
        replace(ROC_AUC, value=60.0),
        replace(ROC_AUC, test_set="typos", value=80.0),
        replace(CELL, column="bleu", metric="bleu", value=20.0),
    ]
    found = numbers(*cells)
    assert headline(found) == {"roc_auc": 70.0, "bleu": 20.0}
    assert list(found)[-1] == "chrf"
    assert list(found)[2:4] == ["roc_auc/permuted", "roc_auc/typos"]

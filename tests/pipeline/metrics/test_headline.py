"""Which cells are looked at first, and under which names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.metrics.cell import Cell, headline

CELL = Cell("nmt_ende", "MED", "random_init", "prex", "beam", value=7.0)


@pytest.mark.parametrize(
    ("column", "metric", "setting", "name"),
    [
        ("bleu", "bleu", {}, "MED/random_init_prex/bleu"),
        ("nll", "nll", {}, "MED/random_init_prex/nll"),
        ("copy_through", "copied_percent", {}, "MED/random_init_prex/copied_percent"),
        ("prex_entropy_s", "prr", {"B": "1"}, "MED/random_init_prex/prr_prex_entropy_s_B1"),
        (
            "prex_rmi_s",
            "roc_auc",
            {"B": "5", "T": "10"},
            "MED/random_init_prex/roc_auc_prex_rmi_s_B5_T10",
        ),
        ("prex_score", "aupr", {}, "MED/random_init_prex/aupr_prex_score"),
        (
            "token_error_rate_percent",
            "percent",
            {},
            "MED/random_init_prex/percent_token_error_rate_percent",
        ),
    ],
)
def test_one_measure_of_a_metric(
    column: str, metric: str, setting: dict[str, str], name: str
) -> None:
    cell = replace(CELL, column=column, metric=metric, **setting)
    assert headline([cell]) == {name: 7.0}
    assert headline([replace(cell, length_norm="false")]) == {}
    assert headline([replace(cell, value=None)]) == {}
    assert headline([replace(cell, value=0.0)]) == {name: 0.0}


@pytest.mark.parametrize(
    ("column", "metric"),
    [("prex_entropy_c", "prr"), ("prex_entropy_s", "roc_auc"), ("wrong_words_percent", "percent")],
)
def test_other_measures_are_left_out(column: str, metric: str) -> None:
    assert headline([replace(CELL, column=column, metric=metric)]) == {}


def test_a_single_model_has_no_combination_in_its_name() -> None:
    cell = replace(CELL, ensemble="single", hypotheses="-", column="bleu", metric="bleu")
    assert headline([cell]) == {"MED/single/bleu": 7.0}

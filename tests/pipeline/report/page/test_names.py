from __future__ import annotations

import pytest

from pipeline.metrics.cell import Cell
from pipeline.report.claims import Claim, Side, Verdict
from pipeline.report.names import decoder_name, measure_label
from pipeline.report.page.browse import ordered_test_sets
from pipeline.report.page.sections import claim_lines


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("prex_entropy_c", "PrEx total H, C-IW"),
        ("expr_epkl_w_c", "ExPr knowledge K, exact, C-IW"),
        ("prex_mi_mc", "PrEx knowledge I, MC"),
        ("var_logp_ln", "variance of ln P, by length"),
        ("prex_mi", "prex_mi"),
        ("my_own_s", "my_own_s"),
    ],
)
def test_measures_in_words(name: str, label: str) -> None:
    assert measure_label(name) == label


def test_decodes_in_words() -> None:
    assert decoder_name("random_init", "expr", "beam") == "random_init ExPr"
    assert decoder_name("random_init", "reference", "teacher_forcing") == (
        "random_init teacher forcing"
    )
    assert decoder_name("single", "-", "beam") == "single"


def test_the_baseline_comes_first_and_sets_that_are_only_scored_last() -> None:
    def cell(test_set: str, ensemble: str, regime: str, metric: str) -> Cell:
        return Cell("nmt_ende", test_set, ensemble, "prex", regime, metric=metric)

    cells = [
        cell("CUT", "random_init", "beam", "roc_auc"),
        cell("L-DEEN", "random_init", "teacher_forcing", "nll"),
        cell("MED", "random_init", "beam", "roc_auc"),
        cell("MED", "single", "beam", "bleu"),
        cell("newstest14", "single", "beam", "bleu"),
    ]
    assert ordered_test_sets(cells, "nmt_ende") == ["newstest14", "MED", "CUT", "L-DEEN"]
    assert ordered_test_sets(cells, "asr") == []


def test_a_verdict_says_by_how_much_on_what_and_what_is_absent() -> None:
    claim = Claim("A beats B.", "sec:x", (), ("nll",), Side(), Side())
    decided = Verdict("c", claim, "nmt_ende", "holds", "nll", 0.25, 0.1, 0.4, 2, 1, 0)
    undecided = Verdict("c", claim, "", "undecided", reason="of asr no task was run")
    first, second = claim_lines([decided, undecided])
    assert (first.task, second.task) == ("EN-DE", "")
    assert first.findings == [
        "Difference 0.250 [0.100, 0.400] nats per token",
        "2 test sets: 1 for it, 0 against it by their own intervals",
    ]
    assert second.findings == ["of asr no task was run"]

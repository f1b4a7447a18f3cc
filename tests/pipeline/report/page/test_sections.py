from __future__ import annotations

import pytest

from pipeline.metrics.cell import Cell
from pipeline.report.names import decoder_name, measure_label, value_label
from pipeline.report.page.browse import ordered_test_sets
from pipeline.report.page.sections import card_html


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("prex_entropy_c", "PrEx total H, C-IW"),
        ("expr_epkl_w_c", "ExPr knowledge K, exact, C-IW"),
        ("prex_mi_mc", "PrEx knowledge I, MC"),
        ("var_logp_ln", "variance of ln P, by length"),
        ("prex_mi", "PrEx knowledge I"),
        ("my_own_s", "my_own_s"),
        ("prex_score", "PrEx total P"),
        ("expr_rmi", "ExPr knowledge M"),
    ],
)
def test_measures_have_readable_labels(name: str, label: str) -> None:
    assert measure_label(name) == label


def test_values_of_measures_that_are_not_in_nats_have_a_unit() -> None:
    assert value_label("xbleu") == "X-BLEU (squared percent)"
    assert value_label("xwer") == "X-WER (squared percent)"
    assert value_label("prex_entropy_c") == measure_label("prex_entropy_c")


def test_decodes_have_readable_names() -> None:
    assert decoder_name("random_init", "expr", "beam") == "random-init ExPr"
    assert decoder_name("random_init", "reference", "teacher_forcing") == (
        "random-init teacher forcing"
    )
    assert decoder_name("single", "-", "beam") == "single"


def test_the_baseline_is_first_and_teacher_forced_sets_are_last() -> None:
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


def test_headings_of_a_card_are_lowered_and_its_tables_are_labelled() -> None:
    html = card_html("# Card\n\n###### Deep\n\n| A |\n| --- |\n| 1 |\n", "nmt", 2)
    assert '<h3 dir="auto">Card</h3>' in html
    assert '<h6 dir="auto">Deep</h6>' in html
    assert '<th dir="auto" scope="col">A</th>' in html
    assert 'aria-label="nmt, table 1: Deep" tabindex="0"><table>' in html
    assert html.count("<div") == html.count("</div>") == 1


def test_html_in_a_card_is_shown_as_text() -> None:
    card = (
        '## "><script>x</script>\n\n| S |\n| --- |\n| <script>alert(1)</script> *a* '
        "![b](http://c) [d](javascript:e) <http://f> |\n\n<iframe></iframe>\n"
    )
    html = card_html(card, "nmt", 2)
    for tag in ("<script", "<img", "<a ", "<em", "<iframe"):
        assert tag not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; *a* ![b](http://c)" in html
    assert 'aria-label="nmt, table 1: &quot;&gt;&lt;script&gt;' in html

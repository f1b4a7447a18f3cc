from dataclasses import replace

import pytest

from pipeline.report.beyond import sentence_rules, token_rules

PRR = "tab:sequence-error-detection"


def test_each_rule_is_told_by_how_much_it_moves_each_cell(frame_of, like_paper):
    right = like_paper(PRR, "nmt_ende")
    moved = [
        replace(cell, metric=metric, value=(cell.value or 0) + shift)
        for metric, shift in (("prr_sbleu_floor", -2.5), ("prr_shifted", 0.5))
        for cell in right
    ]
    moved[0] = replace(moved[0], value=None, reason="all errors are equal")
    table = sentence_rules(frame_of(*right, *moved))
    assert [row.labels[-1] for row in table.rows] == [
        "sentence BLEU with floor 1.1",
        "curve without its end, ties in file order",
    ]
    floor, shifted = (
        [one.cell.value for one in row.cells if one is not None] for row in table.rows
    )
    assert floor[0] is None
    assert floor[1:] == pytest.approx([-2.5] * 11)
    assert shifted == pytest.approx([0.5] * 12)
    assert table.reasons == {"all errors are equal": "a"}
    assert table.rows[0].cells[1].cell.metric == "prr_sbleu_floor_less_prr"


def test_only_length_normalised_measures_of_sets_with_references_have_rows(frame_of, like_paper):
    right = like_paper(PRR, "nmt_ende")
    moved = [replace(cell, metric="prr_shifted") for cell in right]
    other = [replace(cell, length_norm="false") for cell in moved]
    without = [
        replace(cell, test_set="PRM", also_called="", value=None, reason="no reference")
        for cell in moved
    ]
    table = sentence_rules(frame_of(*right, *moved, *other, *without))
    assert [row.labels[1] for row in table.rows] == ["newstest14"]


def test_the_rule_of_tokens_has_a_table_of_its_own(frame_of, like_paper):
    right = like_paper("tab-apn:token-error-detection-prex", "asr")
    moved = [
        replace(cell, metric="aupr_trapezoid", value=(cell.value or 0) + 1)
        for cell in right
        if cell.metric == "aupr"
    ]
    table = token_rules(frame_of(*right, *moved))
    assert [row.labels[1] for row in table.rows] == ["LTC", "LTO", "AMI"]
    assert [one.cell.value for one in table.cells] == pytest.approx([1.0] * 36)


def test_a_run_by_the_right_rules_alone_has_no_rows(frame_of, like_paper):
    frame = frame_of(*like_paper(PRR, "nmt_ende"))
    assert sentence_rules(frame).rows == token_rules(frame).rows == ()

"""Tables that the paper does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from pipeline.errors import ConfigError
from pipeline.metrics.cell import Cell
from pipeline.report.best import mark_best
from pipeline.report.beyond import (
    calibration,
    copy_through,
    sentence_rules,
    tables_beyond_paper,
    token_error_detection,
    token_rules,
)
from pipeline.report.formats import markdown

MakeFrame = Callable[..., pd.DataFrame]
MakeCells = Callable[..., list[Cell]]
PRR = "tab:sequence-error-detection"


def test_copy_through_has_one_row_per_test_set_and_one_column_per_model(
    frame_of: MakeFrame,
) -> None:
    def cell(test_set: str, ensemble: str, hypotheses: str, value: float | None) -> Cell:
        key = ("nmt_ende", test_set, ensemble, hypotheses, "beam")
        reason = "" if value is not None else "no sentence has a hypothesis"
        return Cell(
            *key, column="copy_through", metric="copied_percent", value=value, reason=reason
        )

    table = copy_through(
        frame_of(
            cell("newstest14", "single", "-", 8.0),
            cell("newstest14", "checkpoint", "prex", 9.0),
            cell("L-DE", "checkpoint", "prex", 80.0),
            cell("PRM", "checkpoint", "prex", None),
        )
    )
    values = {row.labels[1]: [cell.cell.value for cell in row.cells if cell] for row in table.rows}
    assert values == {
        "newstest14": [8.0, 9.0, None],
        "L-DE": [None, 80.0, None],
        "PRM": [None, None, None],
    }
    assert all(shown.cell.value is not None or shown.cell.reason for shown in table.cells)


def test_copy_through_is_empty_without_translation(frame_of: MakeFrame) -> None:
    assert copy_through(frame_of()).rows == ()


def test_words_and_missing_words_follow_the_tokens_of_their_test_set(
    frame_of: MakeFrame, like_paper: MakeCells
) -> None:
    tokens = like_paper("tab-apn:token-error-detection-prex", "asr")
    words = [
        replace(cell, column=f"{cell.column}_word_max", value=(cell.value or 0) + 1)
        for cell in tokens
        if cell.metric == "aupr"
    ]
    rate = next(cell for cell in tokens if cell.metric == "percent")
    rates = [replace(rate, column="wrong_words_percent", value=7)]
    silent = replace(rate, test_set="C-FR", value=None, reason="no reference")
    table = mark_best(token_error_detection(frame_of(*tokens, *words, *rates, silent)), {})
    assert [row.labels[1] for row in table.rows] == [
        name for name in ("LTC", "LTO", "AMI") for _ in range(4)
    ]
    of_tokens, maximum, mean, missing = (row.cells for row in table.rows[:4])
    assert of_tokens[-1].cell.value == rate.value
    for token, word in zip(of_tokens[:-1], maximum[:-1], strict=True):
        assert word.cell.value == token.cell.value + 1
    assert maximum[-1].cell.value == mean[-1].cell.value == 7
    assert {shown.cell.value for shown in missing} == {None}
    assert all(shown.cell.reason for shown in missing)
    assert any(shown.best for shown in maximum)
    for header in table.header:
        assert sum(heading.span for heading in header) == table.n_label + len(of_tokens)


def test_token_error_detection_is_empty_without_token_cells(frame_of: MakeFrame) -> None:
    assert token_error_detection(frame_of()).rows == ()


def test_calibration_has_one_row_per_test_set_and_level(frame_of: MakeFrame) -> None:
    cells = [
        Cell("nmt_ende", "MED", ensemble, hypotheses, "beam", column=f"{level}_confidence",
             metric="ece", value=value, low=value - 1, high=value + 1, n=5)
        for level, value in (("token", 8.5), ("sequence", 17.25))
        for ensemble, hypotheses in (("snapshot", "prex"), ("snapshot", "expr"), ("single", "-"))
    ]  # fmt: skip
    table = calibration(frame_of(*cells, Cell("nmt_ende", "MED", "single", "-", "beam")))
    assert [row.labels for row in table.rows] == [
        ("nmt_ende", "MED", "token"),
        ("nmt_ende", "MED", "sequence"),
    ]
    assert [cell.cell.value for cell in table.cells] == [8.5] * 3 + [17.25] * 3
    assert "17.2" in markdown(table, beside_paper=False)


def test_calibration_is_empty_without_calibration_cells(frame_of: MakeFrame) -> None:
    table = calibration(frame_of(Cell("nmt_ende", "MED", "single", "-", "beam")))
    assert table.rows == ()
    assert markdown(table, beside_paper=False)


def test_released_rules_are_shown_as_differences(
    frame_of: MakeFrame, like_paper: MakeCells
) -> None:
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
        [cell.cell.value for cell in row.cells if cell is not None] for row in table.rows
    )
    assert floor[0] is None
    assert floor[1:] == pytest.approx([-2.5] * 11)
    assert shifted == pytest.approx([0.5] * 12)
    assert table.reasons == {"all errors are equal": "a"}
    assert table.rows[0].cells[1].cell.metric == "prr_sbleu_floor_less_prr"


def test_released_rules_need_length_normalisation_and_references(
    frame_of: MakeFrame, like_paper: MakeCells
) -> None:
    right = like_paper(PRR, "nmt_ende")
    moved = [replace(cell, metric="prr_shifted") for cell in right]
    unnormalised = [replace(cell, length_norm="false") for cell in moved]
    without = [
        replace(cell, test_set="PRM", roles="", value=None, reason="no reference") for cell in moved
    ]
    table = sentence_rules(frame_of(*right, *moved, *unnormalised, *without))
    assert [row.labels[1] for row in table.rows] == ["newstest14"]


def test_the_released_token_rule_has_its_own_table(
    frame_of: MakeFrame, like_paper: MakeCells
) -> None:
    right = like_paper("tab-apn:token-error-detection-prex", "asr")
    moved = [
        replace(cell, metric="aupr_trapezoid", value=(cell.value or 0) + 1)
        for cell in right
        if cell.metric == "aupr"
    ]
    table = token_rules(frame_of(*right, *moved))
    assert [row.labels[1] for row in table.rows] == ["LTC", "LTO", "AMI"]
    assert [cell.cell.value for cell in table.cells] == pytest.approx([1.0] * 36)


def test_released_rules_are_empty_for_default_metrics(
    frame_of: MakeFrame, like_paper: MakeCells
) -> None:
    frame = frame_of(*like_paper(PRR, "nmt_ende"))
    assert sentence_rules(frame).rows == token_rules(frame).rows == ()


def test_a_function_that_returns_no_table_is_refused(frame_of: MakeFrame) -> None:
    functions = {"mine": len}
    with pytest.raises(
        ConfigError, match=r"report\.tables\.mine: .* must return a Table \(got 0\)"
    ):
        tables_beyond_paper(functions, frame_of())  # type: ignore[arg-type]

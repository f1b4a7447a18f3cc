from dataclasses import replace

from pipeline.metrics.cell import Cell
from pipeline.report.beyond import copy_through, ood_detection, token_error_detection

OOD = "tab:ood-detection"


def test_ood_sets_beyond_the_paper_have_the_papers_measures(frame_of, like_paper):
    cells = [
        replace(cell, task=task, test_set={"L-DE": "TYPO", "PRM": "CUT"}[cell.test_set])
        for task in ("nmt_ende", "nmt_enfr")
        for cell in like_paper(OOD, "nmt_ende")
        if cell.test_set in ("L-DE", "PRM")
    ]
    cells.append(replace(cells[0], test_set="L-DE", also_called="COPY", column="copy_through"))
    table = ood_detection(frame_of(*cells))
    assert [row.labels for row in table.rows[:6]] == [
        ("EN-DE", name, "10", beam) for name in ("TYPO", "CUT", "COPY") for beam in ("1", "5")
    ]
    assert all(
        one.cell.value is not None for row in table.rows[:4] for one in row.cells[:12] if one
    )
    copied = table.rows[4].cells[-1]
    assert copied is not None
    assert copied.cell.value == cells[0].value
    assert all(one.paper is None for one in table.cells)


def test_a_run_without_these_sets_says_so(frame_of, like_paper):
    table = ood_detection(frame_of(*like_paper(OOD, "nmt_ende")))
    assert len(table.rows) == 6
    assert "test set CUT is not part of this run of nmt_ende" in table.reasons


def test_copied_share_of_every_set_and_model(frame_of):
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
    shown = {row.labels[1]: [one.cell.value for one in row.cells if one] for row in table.rows}
    assert shown == {
        "newstest14": [8.0, 9.0, None],
        "L-DE": [None, 80.0, None],
        "PRM": [None, None, None],
    }
    assert all(one.cell.value is not None or one.cell.reason for one in table.cells)


def test_a_run_of_speech_has_no_copied_share(frame_of):
    assert copy_through(frame_of()).rows == ()


def test_words_and_missing_words_stand_below_the_tokens_of_their_test_set(frame_of, like_paper):
    tokens = like_paper("tab-apn:token-error-detection-prex", "asr")
    words = [
        replace(cell, column=f"{cell.column}_word_max", value=(cell.value or 0) + 1)
        for cell in tokens
        if cell.metric == "aupr"
    ]
    rate = next(cell for cell in tokens if cell.metric == "percent")
    rates = [replace(rate, column="wrong_words_percent", value=7)]
    silent = replace(rate, test_set="C-FR", value=None, reason="no reference")
    table = token_error_detection(frame_of(*tokens, *words, *rates, silent))
    assert [row.labels[1] for row in table.rows] == [
        name for name in ("LTC", "LTO", "AMI") for _ in range(4)
    ]
    of_tokens, largest, mean, missing = (row.cells for row in table.rows[:4])
    assert of_tokens[-1].cell.value == rate.value
    for token, word in zip(of_tokens[:-1], largest[:-1], strict=True):
        assert word.cell.value == token.cell.value + 1
    assert largest[-1].cell.value == mean[-1].cell.value == 7
    assert {one.cell.value for one in missing} == {None}
    assert all(one.cell.reason for one in missing)
    assert any(one.best for one in largest)
    for header in table.header:
        assert sum(heading.span for heading in header) == table.n_label + len(of_tokens)


def test_a_run_of_translation_has_no_words_to_flag(frame_of):
    assert token_error_detection(frame_of()).rows == ()

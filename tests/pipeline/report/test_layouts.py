import pytest

from pipeline.metrics.cell import Cell
from pipeline.report.layouts import (
    ood_detection,
    predictive_performance,
    sequence_error_detection,
)

PERFORMANCE = "tab:nmt-bleu-asr-wer"
ERRORS = "tab:sequence-error-detection"
OOD = "tab:ood-detection"


def labels(table):
    return [row.labels for row in table.rows]


@pytest.mark.parametrize(
    ("layout", "label"),
    [
        (predictive_performance, PERFORMANCE),
        (sequence_error_detection, ERRORS),
        (ood_detection, OOD),
    ],
)
def test_a_run_of_all_tasks_fills_every_cell_of_the_paper(frame_of, like_paper, layout, label):
    ours = like_paper(label, "nmt_ende", "nmt_enfr", "asr")
    table = layout(frame_of(*ours))
    assert table.label == label
    assert len(table.cells) == len(ours)
    for one in table.cells:
        assert one.cell.value == pytest.approx(one.paper + 1)
    for header in table.header:
        widths = {sum(heading.span for heading in header)}
        assert widths == {table.n_label + len(table.rows[0].cells)}


def test_predictive_performance_of_one_task(frame_of, like_paper):
    table = predictive_performance(frame_of(*like_paper(PERFORMANCE, "nmt_ende")))
    assert labels(table) == [
        ("Single, mean ± spread",),
        ("Ensemble, PrEx",),
        ("Ensemble, ExPr",),
    ]
    assert [heading.text for heading in table.header[0]] == ["Model", "BLEU", "NLL, nats per token"]
    bleu = [row.cells[0] for row in table.rows]
    assert [one.cell.value for one in bleu] == pytest.approx([29.8, 31.1, 30.9])
    assert [one.best for one in bleu] == [False, True, True]
    assert bleu[0].paper_spread == 0.2


def test_a_metric_of_the_users_own_becomes_a_column(frame_of, like_paper):
    own = Cell(
        "nmt_ende", "newstest14", "single", "-", "beam", column="words", metric="words", value=3
    )
    table = predictive_performance(frame_of(*like_paper(PERFORMANCE, "nmt_ende"), own))
    assert table.header[0][-1].text == "words"
    assert [row.cells[-1].cell.value for row in table.rows] == [3, None, None]


def test_error_detection_uses_the_papers_name_of_a_test_set(frame_of, like_paper):
    table = sequence_error_detection(frame_of(*like_paper(ERRORS, "nmt_ende")))
    assert labels(table) == [("EN-DE", "nwt14")]
    assert [one.best for one in table.cells].count(True) == 2
    assert table.header[1][-1].text == "M S-IW"


def test_ood_sets_that_the_run_lacks_say_so(frame_of, like_paper):
    ours = [cell for cell in like_paper(OOD, "nmt_ende") if cell.test_set in ("PRM", "L-DE")]
    table = ood_detection(frame_of(*ours))
    assert [label[1:] for label in labels(table)] == [
        (name, "10", beam) for name in ("LTC", "PRM", "L-FR", "L-DE") for beam in ("1", "5")
    ]
    absent = {one.cell.reason for one in table.cells if one.cell.value is None}
    assert absent == {
        "test set LTC is not part of this run of nmt_ende",
        "test set L-FR is not part of this run of nmt_ende",
    }


def test_settings_of_the_run_stand_in_for_those_of_the_paper(frame_of, like_paper):
    ours = [
        Cell(**cell.key._replace(T="2", ensemble="imported")._asdict(), value=cell.value)
        for cell in like_paper(OOD, "nmt_ende")
    ]
    table = ood_detection(frame_of(*ours))
    assert labels(table)[:2] == [("EN-DE", "LTC", "2", "1"), ("EN-DE", "LTC", "2", "5")]
    assert all(one.cell.value is not None for one in table.cells)
    assert all(one.paper is None for one in table.cells)


def test_no_cells_make_an_empty_table(frame_of):
    assert ood_detection(frame_of()).rows == ()
    assert predictive_performance(frame_of()).cells == []

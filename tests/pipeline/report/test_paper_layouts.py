from dataclasses import replace

import pytest

from pipeline.errors import ConfigError
from pipeline.metrics.cell import Cell
from pipeline.report.cells import CellIndex
from pipeline.report.paper import paper_cells
from pipeline.report.paper_tables import LAYOUTS, paper_table
from pipeline.report.table import Table

PERFORMANCE = "tab:nmt-bleu-asr-wer"
ERRORS = "tab:sequence-error-detection"
OOD = "tab:ood-detection"
KINDS = "tab-apn:nmt-bleu-nll-cpt"


@pytest.fixture
def table_of(frame_of):
    def make(label: str, *cells: Cell) -> Table:
        return paper_table(label, CellIndex(frame_of(*cells)))

    return make


def labels(table):
    return [row.labels for row in table.rows]


def of_paper(table):
    """The cells of a table at the keys of the paper's."""
    keys = {cell.key for cell in paper_cells(table.label)}
    return [one for one in table.cells if one.cell.key in keys]


@pytest.mark.parametrize("label", LAYOUTS)
def test_a_run_of_all_tasks_fills_every_cell_of_the_paper(table_of, like_paper, label):
    table = table_of(label, *like_paper(label, "nmt_ende", "nmt_enfr", "asr"))
    assert table.label == label
    found = of_paper(table)
    assert len(found) == len(paper_cells(label))
    for one in found:
        assert one.cell.value == pytest.approx(min(one.paper + 1, 100))
    assert all(one.cell.reason for one in table.cells if one.cell.value is None)
    for header in table.header:
        widths = {sum(heading.span for heading in header)}
        assert widths == {table.n_label + len(table.rows[0].cells)}


@pytest.mark.parametrize("label", LAYOUTS)
def test_a_task_that_was_not_run_leaves_no_row_or_is_told_in_every_cell(
    table_of, like_paper, label
):
    tasks = {cell.key.task for cell in paper_cells(label)}
    table = table_of(label, *like_paper(PERFORMANCE, "nmt_ende"))
    if "nmt_ende" in tasks:
        assert {one.cell.task for one in table.cells} == {"nmt_ende"}
    else:
        assert len(of_paper(table)) == len(paper_cells(label))
        assert {one.cell.reason for one in table.cells} <= {
            f"task {task} was not run" for task in tasks
        }


def test_no_run_at_all_makes_every_table_with_a_reason_in_each_cell(table_of):
    for label in LAYOUTS:
        cells = table_of(label).cells
        assert cells
        assert all("was not run" in one.cell.reason for one in cells)


def test_predictive_performance_of_one_task(table_of, like_paper):
    table = table_of(PERFORMANCE, *like_paper(PERFORMANCE, "nmt_ende"))
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


def test_a_metric_of_the_users_own_becomes_a_column(table_of, like_paper):
    own = Cell(
        "nmt_ende", "newstest14", "single", "-", "beam", column="words", metric="words", value=3
    )
    table = table_of(PERFORMANCE, *like_paper(PERFORMANCE, "nmt_ende"), own)
    assert table.header[0][-1].text == "words"
    assert [row.cells[-1].cell.value for row in table.rows] == [3, None, None]


def test_chrf_stands_behind_the_papers_columns_and_only_for_its_test_sets(table_of, like_paper):
    def chrf(test_set: str, ensemble: str, hypotheses: str, value: float) -> Cell:
        key = ("nmt_ende", test_set, ensemble, hypotheses, "beam")
        return Cell(*key, column="chrf", metric="chrf", value=value)

    ours = [*like_paper(PERFORMANCE, "nmt_ende"), chrf("newstest14", "single", "-", 50)]
    ours += [chrf("newstest14", "random_init", "prex", 52), chrf("L-FR", "single", "-", 9)]
    table = table_of(PERFORMANCE, *ours)
    assert [heading.text for heading in table.header[0]][1:] == [
        "BLEU",
        "NLL, nats per token",
        "chrF",
    ]
    last = [row.cells[-1].cell for row in table.rows]
    assert [cell.value for cell in last] == [50, 52, None]
    assert last[2].reason


def test_kinds_of_ensembles_never_stand_in_for_one_another(table_of, like_paper):
    cells = [cell for cell in like_paper(KINDS, "nmt_ende") if cell.ensemble == "random_init"]
    table = table_of(KINDS, *cells)
    assert [{one.cell.reason for one in row.cells} for row in table.rows] == [
        {
            "newstest14 was not decoded by checkpoint_average",
            "MED was not decoded by checkpoint_average",
        },
        {"newstest14 was not decoded by checkpoint", "MED was not decoded by checkpoint"},
        {""},
    ]


def test_single_models_are_the_averages_of_checkpoints(table_of, like_paper):
    table = table_of(KINDS, *like_paper("tab-apn:nmt-bleu-nll", "nmt_ende"))
    assert [one.cell.value for one in table.rows[0].cells] == pytest.approx(
        [29.8, 30.9, 2.46, 2.29]
    )
    assert {one.cell.ensemble for one in table.rows[0].cells} == {"checkpoint_average"}


def test_error_detection_uses_the_papers_name_of_a_test_set(table_of, like_paper):
    table = table_of(ERRORS, *like_paper(ERRORS, "nmt_ende"))
    assert labels(table) == [("EN-DE", "nwt14")]
    assert [one.best for one in table.cells].count(True) == 2
    assert table.header[1][-1].text == "M S-IW"
    assert table.header[1][-1].latex.startswith(r"$\hat{\mathcal{M}}^{(1)}")


def test_a_rate_beside_measures_is_never_the_best(table_of, like_paper):
    table = table_of("tab:token-error-detection", *like_paper("tab:token-error-detection", "asr"))
    rates = [row.cells[-1] for row in table.rows]
    assert [one.cell.column for one in rates] == ["token_error_rate_percent"] * 3
    assert not any(one.best for one in rates)


def test_ood_sets_that_the_run_lacks_say_so(table_of, like_paper):
    ours = [cell for cell in like_paper(OOD, "nmt_ende") if cell.test_set in ("PRM", "L-DE")]
    table = table_of(OOD, *ours)
    assert [label[1:] for label in labels(table)] == [
        (name, "10", beam) for name in ("LTC", "PRM", "L-FR", "L-DE") for beam in ("1", "5")
    ]
    absent = {one.cell.reason for one in of_paper(table) if one.cell.value is None}
    assert absent == {
        "test set LTC is not part of this run of nmt_ende",
        "test set L-FR is not part of this run of nmt_ende",
    }


def test_the_copied_share_stands_beside_the_papers_measures_once_a_set(table_of, like_paper):
    ours = like_paper(OOD, "nmt_ende")
    copied = [replace(one, column="copy_through", value=99.9) for one in ours]
    table = table_of(OOD, *ours, *{one.key: one for one in copied}.values())
    last = [row.cells[-1] for row in table.rows]
    assert [one.cell.value if one else None for one in last] == [99.9, None] * 4
    assert not any(one.best for one in last if one)
    assert table.header[0][-1].text == "Beyond the paper"


def test_measures_of_the_members_own_decodes_stand_once_a_set(table_of, like_paper):
    label = "apn-tab:ood-detection-adhoc"
    table = table_of(label, *like_paper(label, "nmt_ende"))
    assert [row.cells[-1] is None for row in table.rows] == [False, True] * 4
    assert [heading.text for heading in table.header[0]][-2:] == ["PrEx, knowledge", "Heuristic"]


def test_settings_of_the_run_stand_in_for_those_of_the_paper(table_of, like_paper):
    ours = [
        Cell(**cell.key._replace(T="2", ensemble="imported")._asdict(), value=cell.value)
        for cell in like_paper(OOD, "nmt_ende")
    ]
    table = table_of(OOD, *ours)
    assert labels(table)[:2] == [("EN-DE", "LTC", "2", "1"), ("EN-DE", "LTC", "2", "5")]
    assert all(one.cell.value is not None for one in of_paper(table))
    assert all(one.paper is None for one in table.cells)


def test_settings_that_fall_together_make_one_row(table_of, like_paper):
    ours = [cell for cell in like_paper(OOD, "nmt_ende") if cell.B == "1"]
    assert [label[2:] for label in labels(table_of(OOD, *ours))] == [("10", "1")] * 4


def test_refuses_a_label_that_the_paper_lacks(table_of):
    with pytest.raises(ConfigError, match=r"report\.paper_tables must list .*, got tab:mine"):
        table_of("tab:mine")

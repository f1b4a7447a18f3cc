from dataclasses import replace

import pytest
import yaml

from pipeline.errors import ConfigError
from pipeline.metrics.cell import Cell
from pipeline.report.best import mark_best
from pipeline.report.beyond import tables_beyond_paper
from pipeline.report.cells import CellIndex
from pipeline.report.dataset_tables import dataset_tables
from pipeline.report.ensemble_names import ensemble_name
from pipeline.report.paper_numbers import TABLE_NUMBERS, paper_cells
from pipeline.report.paper_tables import LAYOUTS, paper_table
from pipeline.report.table import Table
from pipeline.run.settings import CONF, implementations

PERFORMANCE = "tab:nmt-bleu-asr-wer"
ERRORS = "tab:sequence-error-detection"
OOD = "tab:ood-detection"
KINDS = "tab-apn:nmt-bleu-nll-cpt"


@pytest.fixture
def table_of(frame_of):
    def make(label: str, *cells: Cell) -> Table:
        return mark_best(paper_table(label, CellIndex(frame_of(*cells))), {})

    return make


def labels(table):
    return [row.labels for row in table.rows]


def of_paper(table):
    """Return the cells of a table that are also in the paper."""
    keys = {cell.key for cell in paper_cells(table.label)}
    return [
        cell
        for cell in table.cells
        if cell.cell.key._replace(test_set=cell.role or cell.cell.test_set) in keys
    ]


@pytest.mark.parametrize("label", LAYOUTS)
def test_a_run_of_all_tasks_fills_every_cell_of_the_paper(table_of, like_paper, label):
    table = table_of(label, *like_paper(label, "nmt_ende", "nmt_enfr", "asr"))
    assert table.label == label
    cells = of_paper(table)
    assert len(cells) == len(paper_cells(label))
    for shown in cells:
        assert shown.cell.value == pytest.approx(min(shown.paper + 1, 100))
    assert all(shown.cell.reason for shown in table.cells if shown.cell.value is None)
    for header in table.header:
        widths = {sum(heading.span for heading in header)}
        assert widths == {table.n_label + len(table.rows[0].cells)}


@pytest.mark.parametrize("label", LAYOUTS)
def test_a_task_that_was_not_run_has_no_rows_or_only_reasons(table_of, like_paper, label):
    tasks = {cell.key.task for cell in paper_cells(label)}
    table = table_of(label, *like_paper(PERFORMANCE, "nmt_ende"))
    if "nmt_ende" in tasks:
        assert {shown.cell.task for shown in table.cells} == {"nmt_ende"}
    else:
        assert len(of_paper(table)) == len(paper_cells(label))
        assert {shown.cell.reason for shown in table.cells} <= {
            f"task {task} was not run" for task in tasks
        }


def test_tables_have_the_numbers_of_the_paper_and_no_two_titles_are_alike(table_of) -> None:
    tables = [table_of(label) for label in LAYOUTS]
    numbers = {table.label: table.number for table in tables}
    assert numbers | {"apn-tab:asr": 6, "apn-tab:nmt": 7} == TABLE_NUMBERS
    assert sorted(TABLE_NUMBERS.values()) == list(range(1, 22))
    assert len({table.title for table in tables}) == len(tables)
    assert tables[3].caption == "Table 4. Out-of-domain detection: ROC-AUC in %"
    assert max(len(table.title) for table in tables) <= 85


def test_no_other_table_has_the_title_of_one_of_the_paper(frame_of) -> None:
    report = yaml.safe_load((CONF / "report" / "default.yaml").read_text(encoding="utf-8"))
    others = tables_beyond_paper(implementations(report["tables"], "report.tables"), frame_of())
    sizes = {"sentences": "9", "words_a_sentence": "7.5"}
    text = dict.fromkeys(("dataset", "subset", "language", "domain"), "x") | sizes
    data = dataset_tables({"nmt_ende": {"subsets": [text]}}, CellIndex(frame_of()))
    titles = [layout.title for layout in LAYOUTS.values()]
    titles += [table.title for table in (*others, *data)]
    assert len(titles) == len(LAYOUTS) + len(report["tables"]) + 1
    assert len(set(titles)) == len(titles)


def test_every_cell_has_a_reason_if_nothing_was_run(table_of):
    for label in LAYOUTS:
        cells = table_of(label).cells
        assert cells
        assert all("was not run" in shown.cell.reason for shown in cells)


def test_predictive_performance_of_one_task(table_of, like_paper):
    table = table_of(PERFORMANCE, *like_paper(PERFORMANCE, "nmt_ende"))
    assert labels(table) == [
        ("Single, mean ± spread",),
        ("Ensemble, PrEx",),
        ("Ensemble, ExPr",),
    ]
    assert [heading.text for heading in table.header[0]] == ["Model", "BLEU", "NLL, nats per token"]
    bleu = [row.cells[0] for row in table.rows]
    assert [cell.cell.value for cell in bleu] == pytest.approx([29.8, 31.1, 30.9])
    assert [cell.best for cell in bleu] == [False, True, False]
    assert bleu[0].paper_spread == 0.2


def test_extra_metrics_become_columns(table_of, like_paper):
    own = Cell(
        "nmt_ende", "newstest14", "single", "-", "beam", column="words", metric="words", value=3
    )
    table = table_of(PERFORMANCE, *like_paper(PERFORMANCE, "nmt_ende"), own)
    assert table.header[0][-1].text == "words"
    assert [row.cells[-1].cell.value for row in table.rows] == [3, None, None]


def test_chrf_follows_the_papers_columns_for_their_test_sets_only(table_of, like_paper):
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


def test_each_kind_of_ensemble_has_its_own_rows(table_of, like_paper):
    cells = [cell for cell in like_paper(KINDS, "nmt_ende") if cell.ensemble == "random_init"]
    table = table_of(KINDS, *cells)
    assert [{shown.cell.reason for shown in row.cells} for row in table.rows] == [
        {
            "newstest14 was not decoded by checkpoint average",
            "MED was not decoded by checkpoint average",
        },
        {"newstest14 was not decoded by checkpoint", "MED was not decoded by checkpoint"},
        {""},
    ]


_RUNS = {"single": ("seed_1;seed_2", 1), "checkpoint_average": ("seed_1;seed_2", 1),
         "checkpoint": ("seed_1;seed_2", 3), "random_init": ("seed_1;seed_2", 2)}  # fmt: skip


def _with_runs(cell: Cell, **changes: tuple[str, int]) -> Cell:
    runs, members = (_RUNS | changes)[cell.ensemble]
    return replace(cell, runs=runs, members=members)


@pytest.mark.parametrize("label", LAYOUTS)
def test_every_table_tells_whether_its_rows_use_the_same_training_runs(table_of, like_paper, label):
    cells = like_paper(label, "nmt_ende", "nmt_enfr", "asr")
    alike = table_of(label, *map(_with_runs, cells))
    for cell in (shown.cell for shown in alike.cells if shown.cell.value is not None):
        (note,) = [note for note in alike.footnotes if f"Training runs ({cell.task_label})" in note]
        assert note.startswith(f"Training runs ({cell.task_label}): seed 1, seed 2. Members: ")
        assert f"{ensemble_name(cell.ensemble)} {cell.members}" in note
    changed = {"random_init": ("seed_3", 1)}
    unlike = table_of(label, *(_with_runs(cell, **changed) for cell in cells))
    for task in {shown.cell.task_label for shown in unlike.cells if shown.cell.value is not None}:
        own = [shown.cell for shown in unlike.cells if shown.cell.task_label == task]
        differ = len({cell.runs for cell in own if cell.value is not None}) > 1
        (note,) = [note for note in unlike.footnotes if f"Training runs ({task})" in note]
        assert ("(not the same runs in all rows)" in note) == differ
        assert ("seed 1, seed 2" in note and "seed 3" in note) == differ


def test_models_that_were_not_trained_here_are_not_called_training_runs(table_of, like_paper):
    (label, *_) = LAYOUTS
    cells = [replace(cell, runs="run1/a;run2/a", members=2) for cell in like_paper(label, "asr")]
    notes = " ".join(table_of(label, *cells).footnotes)
    assert "Models (ASR): run1/a, run2/a. Members: " in notes
    assert "Training runs" not in notes


def test_error_detection_uses_the_papers_name_of_a_test_set(table_of, like_paper):
    table = table_of(ERRORS, *like_paper(ERRORS, "nmt_ende"))
    assert labels(table) == [("EN-DE", "newstest14 (nwt14)")]
    assert [cell.best for cell in table.cells].count(True) == 1
    assert table.header[1][-1].text == "M S-IW"
    assert table.header[1][-1].latex.startswith(r"$\hat{\mathcal{M}}^{(1)}")


def test_an_error_rate_is_never_the_best(table_of, like_paper):
    table = table_of("tab:token-error-detection", *like_paper("tab:token-error-detection", "asr"))
    rates = [row.cells[-1] for row in table.rows]
    assert [rate.cell.column for rate in rates] == ["token_error_rate_percent"] * 3
    assert not any(rate.best for rate in rates)


def test_missing_ood_test_sets_have_reasons(table_of, like_paper):
    ours = [cell for cell in like_paper(OOD, "nmt_ende") if cell.test_set in ("PRM", "L-DE")]
    table = table_of(OOD, *ours)
    assert [label[1:] for label in labels(table)] == [
        (name, "10", beam) for name in ("LTC", "PRM", "L-FR", "L-DE") for beam in ("1", "5")
    ]
    absent = {cell.cell.reason for cell in of_paper(table) if cell.cell.value is None}
    assert absent == {
        "test set LTC is not part of this run of EN-DE",
        "test set L-FR is not part of this run of EN-DE",
    }


def test_the_copied_share_is_shown_once_per_test_set(table_of, like_paper):
    ours = like_paper(OOD, "nmt_ende")
    copied = [replace(cell, column="copy_through", value=99.9) for cell in ours]
    table = table_of(OOD, *ours, *{cell.key: cell for cell in copied}.values())
    last = [row.cells[-1] for row in table.rows]
    assert [cell.cell.value if cell else None for cell in last] == [99.9, None] * 4
    assert any("depend on neither T nor B" in note for note in table.notes)
    assert not any(cell.best for cell in last if cell)
    assert table.header[0][-1].text == "Beyond the paper"


def test_x_bleu_and_x_wer_are_shown_once_per_test_set(table_of, like_paper):
    label = "apn-tab:ood-detection-adhoc"
    table = table_of(label, *like_paper(label, "nmt_ende"))
    assert [row.cells[-1] is None for row in table.rows] == [False, True] * 4
    assert [heading.text for heading in table.header[0]][-2:] == ["PrEx, knowledge", "Heuristic"]


def test_the_settings_of_the_run_replace_those_of_the_paper(table_of, like_paper):
    ours = [replace(cell, T="2", ensemble="imported") for cell in like_paper(OOD, "nmt_ende")]
    table = table_of(OOD, *ours)
    assert labels(table)[:2] == [("EN-DE", "LTC", "2", "1"), ("EN-DE", "LTC", "2", "5")]
    assert all(cell.cell.value is not None for cell in of_paper(table))
    assert all(cell.paper is None for cell in table.cells)


def test_equal_settings_are_merged_into_one_row(table_of, like_paper):
    ours = [cell for cell in like_paper(OOD, "nmt_ende") if cell.B == "1"]
    assert [label[2:] for label in labels(table_of(OOD, *ours))] == [("10", "1")] * 4


def test_an_unknown_label_is_refused(table_of):
    with pytest.raises(
        ConfigError, match=r"report\.paper_tables: the paper has no table tab:mine\. Choose"
    ):
        table_of("tab:mine")

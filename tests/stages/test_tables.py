from __future__ import annotations

import csv
import re
from pathlib import Path

import pandas as pd
import pytest

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.cell import Cell, write_cells
from pipeline.metrics.evaluation import write_draws, write_replicates
from pipeline.report.paper_numbers import paper_cells
from pipeline.report.paper_tables import LAYOUTS
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.run.artifacts import PartFolder
from pipeline.run.files import write_json
from pipeline.run.settings import PipelineConfig
from stages.tables import tables
from stages.uncertainty import uncertainty
from tests.artifacts import list_files
from tests.composed_settings import composed_settings
from tests.stages.synthetic_run import FORCED, SyntheticRun

LABELS = ["tab:nmt-bleu-asr-wer", "tab:sequence-error-detection", "tab:ood-detection"]


def my_table(cells: pd.DataFrame) -> Table:
    cell = TableCell(Cell("nmt_ende", "newstest14", "-", "-", "beam", value=float(len(cells))))
    return Table("tab:mine", "Mine", ((Heading("n"), Heading("cells")),), (Row(("all",), (cell,)),))


def settings(root: Path, *overrides: str) -> PipelineConfig:
    return composed_settings(f"io.root='{root}'", "tracking=off", *overrides)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a run with EN-DE cells that have the keys of three tables of the paper."""
    folder = tmp_path / "out: 日本" / "metrics" / "nmt_ende"
    folder.mkdir(parents=True)
    keys = [
        cell.key._replace(test_set=cell.key.test_set.replace("nwt14", "newstest14"))
        for label in LABELS
        for cell in paper_cells(label)
        if cell.key.task == "nmt_ende" and cell.key.test_set != "LTC"
    ]
    cells = [
        Cell(**key._asdict(), value=50.0, low=49.0, high=51.0, n=9, roles="nwt14") for key in keys
    ]
    write_cells(folder / "cells.csv", cells)
    write_draws(folder / "draws.parquet", {})
    write_replicates(folder / "replicates.csv", {})
    write_other_results(tmp_path / "out: 日本")
    return tmp_path / "out: 日本"


def write_other_results(root: Path) -> None:
    """Write empty lists of figures and decodes, and the data card."""
    figures = root / "metrics" / "nmt_ende" / "figures"
    figures.mkdir()
    write_json(figures / "nmt_ende_figures.json", [])
    prepared = root / "prepare" / "nmt_ende"
    prepared.mkdir(parents=True)
    (prepared / "data_card.md").write_text("# Data\n", encoding="utf-8")
    row = {"dataset": "d", "subset": "train", "language": "en", "domain": "help"}
    row |= {"sentences": "9", "words_a_sentence": "7.5"}
    list_files(prepared, "prepare", {"subsets": [row]})
    decodes = root / "decode" / "nmt_ende"
    decodes.mkdir(parents=True)
    PartFolder(decodes, "decode", {}).write_manifest()


def test_case_17_all_tables_are_written_to_any_path(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    config = settings(root)
    tables(config)
    folder = root / "tables"
    names = {path.name for path in folder.iterdir()}
    absent = [
        label
        for label in LAYOUTS
        if "nmt_ende" not in {cell.key.task for cell in paper_cells(label)}
    ]
    assert len(absent) == 6
    labels = [*(label for label in LAYOUTS if label not in absent), "apn-tab:nmt"]
    not_made = ", ".join([*absent, *config.report.tables])
    assert f"not made, since nothing in this run belongs there: {not_made}" in caplog.text
    stems = [label.replace(":", "_") for label in labels]
    expected = {f"{stem}.{end}" for stem in stems for end in ("csv", "md", "tex")}
    assert "tables without any value: " in caplog.text
    reason = "test set L-DEEN is not part of this run of nmt_ende (cells: "
    assert caplog.text.count(reason) == 1
    empty = (folder / "apn-tab_ood-detection-tf.md").read_text(encoding="utf-8")
    assert empty.count("\n- ") == 4
    assert "n/a" not in empty
    assert "ood-detection-tf" not in (folder / "all_tables.tex").read_text(encoding="utf-8")
    common = {"results.csv", "all_tables.tex", "claims.csv", "claims.md", "manifest.json"}
    assert names == expected | common
    assert (root / "report" / "index.html").is_file()
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == {*labels}
    assert {row["test_set_name"] for row in rows} >= {"newstest14", "PRM", "train"}
    assert all(row["value"] or row["reason"] for row in rows)
    of_run = [row for row in rows if row["table"] in LABELS and row["column"] != "copy_through"]
    of_paper = [cell for label in LABELS for cell in paper_cells(label)]
    assert len(of_run) == sum(cell.key.task == "nmt_ende" for cell in of_paper)
    assert {row["reason"] for row in of_run if not row["value"]} == {
        "test set LTC is not part of this run of nmt_ende"
    }
    assert {row["task"] for row in of_run} == {"nmt_ende"}
    text = "".join((folder / f"{stem}.tex").read_text(encoding="utf-8") for stem in stems)
    assert text.count("\\caption{") == len(labels)


def test_table_of_the_user_is_written(root: Path) -> None:
    tables(settings(root, "+report.tables.mine=tests.stages.test_tables.my_table"))
    assert "| all | **" not in (root / "tables" / "tab_mine.md").read_text(encoding="utf-8")
    assert "tab:mine,nmt_ende" in (root / "tables" / "results.csv").read_text(encoding="utf-8")


def test_unknown_label_is_refused(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"report\.paper_tables: the paper has no table tab:mine"):
        tables(settings(root, "report.paper_tables=[tab:mine]"))


def test_function_that_returns_no_table_is_refused(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"report\.tables\.mine: .* must return a Table"):
        tables(settings(root, "+report.tables.mine=copy.copy"))


def test_missing_cells_name_the_stage_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"metrics: has no cells of nmt_ende, .*Run python -m"):
        tables(settings(tmp_path))


def test_case_2_tables_of_a_single_member_have_numbers_or_reasons(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path)
    run.stores = [
        ("random_init.prex.help", {"members": ["seed_1"]}, True),
        ("random_init.prex.permuted", {"members": ["seed_1"], "test_set": "permuted"}, False),
        ("seed_1.beam.help", {"ensemble": "seed_1", "members": ["seed_1"]}, True),
        (FORCED, {"regime": "teacher_forcing", "members": ["seed_1"]}, True),
    ]
    run.write()
    uncertainty(settings(tmp_path))
    run.cells()
    prepared = tmp_path / "prepare" / "nmt_ende"
    prepared.mkdir(parents=True)
    (prepared / "data_card.md").write_text("# Data\n", encoding="utf-8")
    tables(settings(tmp_path))
    for path in (tmp_path / "tables").iterdir():
        words = re.split(r"[^\w.]+", path.read_text(encoding="utf-8").lower())
        assert "nan" not in words, path
    with (tmp_path / "tables" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["value"] or row["reason"] for row in rows)
    reasons = {row["reason"] for row in rows if row["ensemble"] == "single"}
    assert "one member: no spread" in reasons


def test_a_point_has_the_tasks_of_its_sweep_only(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "prepare").rename(root.parent / "prepared")
    (root / "prepare").symlink_to(root.parent / "prepared")
    tables(settings(root))
    assert "has no cells" not in caplog.text
    assert (root / "report" / "index.html").is_file()


def test_tasks_of_the_demo_that_were_not_run_are_no_business_of_a_task_of_ones_own(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables(settings(root, "task.name=nmt_ende"))
    assert "has no cells of nmt_enfr, asr" in caplog.text
    caplog.clear()
    for stage in ("metrics", "prepare", "decode"):
        (root / stage / "nmt_ende").rename(root / stage / "en_es")
    figures = root / "metrics" / "en_es" / "figures"
    (figures / "nmt_ende_figures.json").rename(figures / "en_es_figures.json")
    cells = root / "metrics" / "en_es" / "cells.csv"
    cells.write_text(cells.read_text(encoding="utf-8").replace("nmt_ende", "en_es"), "utf-8")
    tables(settings(root, "task.name=en_es"))
    assert "has no cells" not in caplog.text

"""Lay out the cells of all tasks: the paper's tables, claims, and a page for people."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from pipeline import tracking
from pipeline.errors import ConfigError, DataError
from pipeline.metrics.evaluation import read_draws
from pipeline.report.cells import CellIndex, read_cells
from pipeline.report.claims import Claim, Verdict, verdicts, write_claims
from pipeline.report.dataset_tables import dataset_tables
from pipeline.report.formats import latex, markdown
from pipeline.report.page import PageContent, PageFigure, TaskFolders, page_figures, write_page
from pipeline.report.paper_tables import paper_table
from pipeline.report.results import write_results, write_table
from pipeline.report.table import Table
from pipeline.run.application import run
from pipeline.run.artifacts import check_seal, read_manifest, sealed_file
from pipeline.run.files import complete_folder, file_sha256, read_json
from pipeline.run.settings import CONF, PipelineConfig, implementation

_log = logging.getLogger(__name__)


def tables(config: PipelineConfig) -> None:
    """Write {io.root}/tables/ and {io.root}/report/index.html.

    In tables/: each table as .csv, .md and .tex, all_tables.tex, results.csv, claims.csv and .md.
    """
    root = Path(config.io.root)
    files = _cell_files(root / "metrics", config.task.name)
    for task in [path.parent.name for path in files]:
        decoded = read_manifest(root / "decode" / task)
        check_seal(root / "metrics" / task, decoded)
        check_seal(root / "uncertainty" / task, decoded)
    cells = read_cells(files)
    made = _tables(config, cells, [path.parent.name for path in files])
    claims = _verdicts(config, cells, files)
    with complete_folder(root / "tables") as out:
        write_claims(out, claims)
        write_results(out / "results.csv", made)
        _write_tables(out, made, config.report.beside_paper)
    with complete_folder(root / "report") as out:
        content = PageContent(
            tables=made,
            claims=claims,
            figures=[one for path in files for one in _figures(path.parent)],
            tasks=[_folders(root, path.parent.name) for path in files],
            cells=cells,
            most_sentences=config.report.page_sentences,
            beside_paper=config.report.beside_paper,
        )
        write_page(out / "index.html", content)
    with tracking.open_run(config, "tables") as log:
        log.artifacts(*sorted((root / "tables").iterdir()), root / "report" / "index.html")
    shown = [one for table in made for one in table.cells]
    _log.info(
        "%d tables with %d cells, %d of them without a value and with a reason",
        len(made),
        len(shown),
        sum(one.cell.value is None for one in shown),
    )


def _tables(config: PipelineConfig, cells: pd.DataFrame, tasks: Sequence[str]) -> list[Table]:
    """The paper's tables, those of the data sets, and those that the settings add."""
    index = CellIndex(cells)
    made = [paper_table(label, index) for label in config.report.paper_tables]
    made += dataset_tables(_manifests(Path(config.io.root) / "prepare", tasks))
    for label, dotted in config.report.tables.items():
        key = f"report.tables.{label}"
        table = implementation(dotted, key)(cells)
        if not isinstance(table, Table):
            raise ConfigError(f"{key} must name a function that returns a Table, got {table!r}")
        made.append(table)
    return made


def _write_tables(folder: Path, made: Sequence[Table], beside_paper: bool) -> None:
    (folder / "all_tables.tex").write_text(latex(made, beside_paper), encoding="utf-8")
    for table in made:
        write_table(folder / f"{table.name}.csv", table, beside_paper)
        (folder / f"{table.name}.md").write_text(markdown(table, beside_paper), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(latex([table], beside_paper), encoding="utf-8")


def _manifests(prepared: Path, tasks: Sequence[str]) -> dict[str, Any]:
    """Task -> the manifest of its data."""
    paths = {task: prepared / task / "manifest.json" for task in tasks}
    absent = [str(path) for path in paths.values() if not path.is_file()]
    if absent:
        _log.warning("no %s: the table of data sets has no rows of it", ", ".join(absent))
    return {task: read_json(path, "prepare") for task, path in paths.items() if path.is_file()}


def _verdicts(config: PipelineConfig, cells: pd.DataFrame, files: Sequence[Path]) -> list[Verdict]:
    claims: dict[str, Claim] = {}
    for group, dotted in config.report.claims.items():
        claims |= implementation(dotted, f"report.claims.{group}")()
    return verdicts(claims, cells, read_draws([path.with_name("draws.parquet") for path in files]))


def _figures(metrics: Path) -> list[PageFigure]:
    """The figures of a task, from the folder of its metrics."""
    figures = metrics / "figures"
    listed = read_json(figures / f"{metrics.name}_figures.json", "metrics", list)
    return page_figures(figures, listed)


def _folders(root: Path, task: str) -> TaskFolders:
    """Where the page finds a task's sentences, and the names of units that both sides share."""
    prepared = root / "prepare" / task
    names = sorted(path.name for path in (prepared / "fairseq").glob("dict.*.txt"))
    dictionaries = [sealed_file(prepared, f"fairseq/{name}") for name in names]
    joint = len({file_sha256(path) for path in dictionaries}) == 1  # else ids are shown
    return TaskFolders(
        task,
        root / "decode" / task,
        root / "uncertainty" / task,
        data_card=sealed_file(prepared, "data_card.md"),
        dictionary=dictionaries[0] if joint else None,
    )


def _cell_files(folder: Path, task: str) -> list[Path]:
    """The cell files of the tasks of conf/dag.yaml and of the chosen one; at least one."""
    dag = yaml.safe_load((CONF / "dag.yaml").read_text(encoding="utf-8"))
    tasks = list(dict.fromkeys([*dag["tasks"], task]))
    paths = {name: folder / name / "cells.csv" for name in tasks}
    absent = [name for name, path in paths.items() if not path.parent.is_dir()]
    if absent:
        _log.warning("no cells of %s: their rows are left out", ", ".join(absent))
    found = [path for name, path in paths.items() if name not in absent]
    if not found:
        raise DataError(
            f"{folder} must hold the cells of {', '.join(tasks)}: "
            "run python -m stages.metrics first"
        )
    return found


if __name__ == "__main__":
    run(tables, lock="root")

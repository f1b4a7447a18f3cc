"""Lay out the results of all tasks: the paper's tables, claims, and the HTML page."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import Path

import yaml

from pipeline import tracking
from pipeline.metrics.evaluation import read_draws, read_replicates
from pipeline.metrics.given_results import results_of_tasks
from pipeline.report.best import mark_best
from pipeline.report.beyond import tables_beyond_paper
from pipeline.report.cells import CellIndex, read_cells, tasks_with_cells
from pipeline.report.claims import Claim, write_claims
from pipeline.report.dataset_tables import dataset_tables, read_descriptions
from pipeline.report.formats import write_tables
from pipeline.report.page import Origin, PageContent, TaskFolders, page_figures, write_page
from pipeline.report.paper_numbers import TABLE_NUMBERS
from pipeline.report.paper_tables import is_about, paper_table
from pipeline.report.table import count_reasons
from pipeline.report.verdicts import verdicts
from pipeline.run.application import run
from pipeline.run.artifacts import Artifact, new_artifact
from pipeline.run.code import program_version, provenance
from pipeline.run.points import is_point
from pipeline.run.settings import CONF, PipelineConfig, implementations

_log = logging.getLogger(__name__)


def tables(config: PipelineConfig) -> None:
    """Write {io.root}/tables/ (all tables and claims) and {io.root}/report/index.html.

    With io.out, the results are those that stage metrics made there from stores that a user named.
    """
    if config.io.out is not None:
        with results_of_tasks(config) as (inside, tasks):
            _write(inside, tasks_with_cells(Path(inside.io.root) / "metrics", tasks), "")
        return
    of_dag = yaml.safe_load((CONF / "dag.yaml").read_text(encoding="utf-8"))["tasks"]
    metrics = Path(config.io.root) / "metrics"
    # A task of one's own may be run by hand, without those of the demo.
    asked = of_dag if config.task.name in of_dag else [config.task.name]
    if is_point(Path(config.io.root)):  # it has what was swept only
        asked = [task for task in asked if (metrics / task).is_dir()] or asked
    tasks = tasks_with_cells(metrics, asked, of_dag)
    _write(config, tasks, config.experiment.name)


def _write(config: PipelineConfig, tasks: list[str], experiment: str) -> None:
    """Write everything; `experiment` is empty for decode stores that a user named."""
    begun = time.time()
    root, report = Path(config.io.root), config.report
    metrics = root / "metrics"
    inputs = {name: digest for task in tasks for name, digest in _checked_inputs(root, task)}
    cells = read_cells(metrics / task / "cells.csv" for task in tasks)
    draws = read_draws([metrics / task / "draws.parquet" for task in tasks])
    replicates = read_replicates([metrics / task / "replicates.csv" for task in tasks])
    _log.info("lays out %d cells of %s", len(cells), ", ".join(tasks))
    index = CellIndex(cells)
    added_tables = implementations(report.tables, "report.tables")
    claim_groups = implementations(report.claims, "report.claims")
    of_paper = [paper_table(label, index) for label in report.paper_tables]
    descriptions = read_descriptions(root / "prepare", tasks)
    tables_of_run = [
        *(table for table in of_paper if is_about(table, tasks)),
        *dataset_tables(descriptions, index),
        *tables_beyond_paper(added_tables, cells),
    ]
    tables_of_run.sort(key=lambda table: table.number or len(TABLE_NUMBERS) + 1)
    all_tables = [mark_best(table, draws) for table in tables_of_run if table.rows]
    made = {table.label for table in all_tables}
    left_out = [table.label for table in (*of_paper, *tables_of_run) if table.label not in made]
    if left_out:
        _log.info(
            "not made, since nothing in this run belongs there: %s",
            ", ".join(dict.fromkeys(left_out)),
        )
    without = [table for table in all_tables if table.is_empty]
    if without:
        _log.info(
            "tables without any value: %s",
            ", ".join(table.label for table in without),
        )
        for reason, count in count_reasons(without).most_common():
            _log.info("  %s (cells: %d)", reason, count)
    claims: dict[str, Claim] = {}
    for claims_of_group in claim_groups.values():
        claims |= claims_of_group()
    judged = verdicts(claims, cells, draws, replicates)
    functions = [*added_tables.values(), *claim_groups.values()]
    made_from = provenance(config, "tables", inputs, *functions)
    with new_artifact(root / "tables", made_from) as out:
        write_tables(out, all_tables, report.beside_paper)
        write_claims(out, judged)
    _log.info("%d tables with a value", len(all_tables) - len(without))
    content = PageContent(
        tables=all_tables,
        claims=judged,
        figures=[
            figure
            for task in tasks
            for figure in page_figures(metrics / task / "figures", task, index.label(task))
        ],
        tasks=[TaskFolders.below(root, task) for task in tasks],
        cells=cells,
        most_sentences=report.page_sentences,
        beside_paper=report.beside_paper,
        origin=Origin(experiment, program=program_version(), descriptions=descriptions),
    )
    with new_artifact(root / "report", made_from) as out:
        write_page(out / "index.html", content)
    with tracking.open_run(config, "tables", begun) as log:
        written = Artifact(root / "tables", "tables")
        log.artifacts(*map(written.file, written.names()), root / "report" / "index.html")
    page = root / "report" / "index.html"
    _log.info("the report is %s (%.1f MB)", page, page.stat().st_size / 1e6)


def _checked_inputs(root: Path, task: str) -> Iterable[tuple[str, str]]:
    """The digests of a task's results. Raises DataError if they do not belong together."""
    decoded = Artifact(root / "decode" / task, "decode")
    uncertainty, metrics = (
        Artifact(root / stage / task, stage, required=False) for stage in ("uncertainty", "metrics")
    )
    uncertainty.check(decoded.parts())
    metrics.check(decoded.parts() | uncertainty.as_input)
    return (decoded.as_input | uncertainty.as_input | metrics.as_input).items()


if __name__ == "__main__":
    run(tables, lock="root", needs_root=True, uses=("out",))

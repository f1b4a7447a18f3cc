"""Lay out the cells of all tasks as the paper's tables, for people and for programs."""

from __future__ import annotations

import logging
from pathlib import Path

import yaml

from pipeline import tracking
from pipeline.config import CONF, PipelineConfig, implementation
from pipeline.errors import ConfigError, DataError
from pipeline.parts import whole_folder
from pipeline.report.cells import CellIndex, read_cells
from pipeline.report.latex import latex
from pipeline.report.markdown import markdown
from pipeline.report.paper_layouts import paper_table
from pipeline.report.results import write_results, write_table
from pipeline.report.table import Table
from stages import run

_log = logging.getLogger(__name__)


def tables(config: PipelineConfig) -> None:
    """Write {io.root}/tables/: each table as .csv, .md and .tex, results.csv, all_tables.tex."""
    root = Path(config.io.root)
    cells = read_cells(_cell_files(root / "metrics", config.task.name))
    index = CellIndex(cells)
    made = [paper_table(label, index) for label in config.report.paper_tables]
    for label, dotted in config.report.tables.items():
        key = f"report.tables.{label}"
        table = implementation(dotted, key)(cells)
        if not isinstance(table, Table):
            raise ConfigError(f"{key} must name a function that returns a Table, got {table!r}")
        made.append(table)
    with whole_folder(root / "tables") as out:
        write_results(out / "results.csv", made)
        beside = config.report.beside_paper
        (out / "all_tables.tex").write_text(latex(made, beside), encoding="utf-8")
        for table in made:
            write_table(out / f"{table.name}.csv", table, beside)
            (out / f"{table.name}.md").write_text(markdown(table, beside), encoding="utf-8")
            (out / f"{table.name}.tex").write_text(latex([table], beside), encoding="utf-8")
    with tracking.open_run(config, "tables") as log:
        log.artifacts(*sorted((root / "tables").iterdir()))
    shown = [one for table in made for one in table.cells]
    absent = sum(one.cell.value is None for one in shown)
    _log.info(
        "%d tables with %d cells, %d of them without a value and with a reason",
        len(made),
        len(shown),
        absent,
    )


def _cell_files(folder: Path, task: str) -> list[Path]:
    """The cell files of the tasks of conf/dag.yaml and of the chosen one; at least one."""
    dag = yaml.safe_load((CONF / "dag.yaml").read_text(encoding="utf-8"))
    tasks = list(dict.fromkeys([*dag["tasks"], task]))
    paths = {name: folder / name / "cells.csv" for name in tasks}
    absent = [name for name, path in paths.items() if not path.is_file()]
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
    run(tables)

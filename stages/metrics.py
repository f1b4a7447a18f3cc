"""Evaluate the decodes and measures of a task: one cell per number, each with its interval."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

from pipeline import tracking
from pipeline.errors import ConfigError
from pipeline.metrics.cell import write_cells
from pipeline.metrics.decodes import read_decodes
from pipeline.metrics.evaluation import write_draws, write_replicates
from pipeline.metrics.external_scores import provenance_of_scores, read_external_scores
from pipeline.metrics.given_results import results_of_stores
from pipeline.metrics.main_numbers import headline, main_intervals, main_numbers
from pipeline.metrics.replicates import leave_one_out
from pipeline.metrics.task import (
    baseline_test_set,
    check_measure_settings,
    extra_metrics,
    task_cells,
    task_evaluation,
)
from pipeline.metrics.text_warnings import text_warnings
from pipeline.quality.tokenisers import measure_rules
from pipeline.report.figures import TaskEvidence, make_figures
from pipeline.run.application import run
from pipeline.run.artifacts import Artifact, is_complete, new_artifact
from pipeline.run.code import provenance
from pipeline.run.files import read_json, write_json
from pipeline.run.points import is_multirun
from pipeline.run.settings import PipelineConfig, implementations, iterate_values
from pipeline.store import SUBSET
from stages.uncertainty import uncertainty

_log = logging.getLogger(__name__)


def metrics(config: PipelineConfig) -> None:
    """Write {io.root}/metrics/{task}/: cells.csv and what belongs to it.

    Beside it are draws.parquet, replicates.csv and figures/; numbers.json with the numbers of the
    main ensemble by short names, headline.json with a few of them, and intervals.json. With
    io.store, measures and metrics of these stores are computed, and all results go to io.out
    instead of io.root.
    """
    if config.io.store is not None:
        with results_of_stores(config) as inside:
            uncertainty(inside)
            _evaluate(inside)
        _log.info("next: python -m stages.tables io.out=%s", config.io.out)
    elif config.io.out or config.io.baseline or config.io.member_stores:
        raise ConfigError(
            "io.out, io.baseline, io.member_stores: need io.store. Set it, or leave them out."
        )
    else:
        _evaluate(config)


def _evaluate(config: PipelineConfig) -> None:
    begun = time.time()
    root, task = Path(config.io.root), config.task.name
    measured = root / "uncertainty" / task
    evaluation = task_evaluation(config)
    if 1 not in iterate_values(config.uncertainty.beam):
        _log.warning(
            "uncertainty.beam: does not include 1 (got %s), so that there is no error detection, "
            "which uses the best hypothesis only. Add 1.",
            config.uncertainty.beam,
        )
    parts = Artifact(root / "decode" / task, "decode").parts()
    measures = Artifact(measured, "uncertainty", required=False)
    measures.check(parts)
    check_measure_settings(config, measures)
    decodes = read_decodes(root / "decode" / task, parts, config.task)
    evaluated = {part: d for part, d in decodes.items() if d.cell.ensemble != SUBSET}
    for warning in text_warnings(list(evaluated.values()), evaluation.quality):
        _log.warning("%s: %s", task, warning)
    prepared = root / "prepare" / task
    scores = read_external_scores(config.metrics.scores, task, decodes)
    figures = implementations(config.report.figures, "report.figures")
    plug_ins = [*extra_metrics(config).values(), *figures.values()]
    inputs = parts | measures.as_input | provenance_of_scores(scores, decodes)
    made_from = provenance(config, "metrics", inputs, *plug_ins)
    folder = root / "metrics" / task
    if is_multirun() and is_complete(folder, made_from):
        _track(config, read_json(folder / "numbers.json", "metrics"), begun)
        _log.info("%s: complete, and not made again", folder)
        return
    cells = task_cells(config, evaluated, measured, prepared, evaluation, scores)
    # Ensembles without one training run have no cells; their values show whether the runs agree.
    left_out = leave_one_out(decodes, config.ensemble.name)
    task_cells(config, left_out, measured, prepared, replace(evaluation, resamples=0), scores)
    baseline = baseline_test_set(config.task)
    rules = measure_rules(config)
    evidence = TaskEvidence(task, decodes, measured, baseline, evaluation, rules, scores, cells)
    temperature = next(iterate_values(config.uncertainty.temperature))
    of_main = config.ensemble.name, baseline, temperature
    numbers = main_numbers(cells, *of_main)
    with new_artifact(folder, made_from) as out:
        write_cells(out / "cells.csv", cells)
        write_draws(out / "draws.parquet", evaluation.draws)
        write_replicates(out / "replicates.csv", evaluation.replicates)
        write_json(out / "numbers.json", numbers)
        write_json(out / "headline.json", headline(numbers))
        write_json(out / "intervals.json", main_intervals(cells, *of_main))
        (out / "figures").mkdir()
        make_figures(out / "figures", evidence, figures)
    _track(config, numbers, begun)
    _log.info(
        "%s: %d cells from %d decodes; %d cells have a reason instead of a value",
        task,
        len(cells),
        len(evaluated),
        sum(cell.value is None for cell in cells),
    )


def _track(config: PipelineConfig, numbers: dict[str, float], begun: float) -> None:
    root, task = Path(config.io.root), config.task.name
    written = Artifact(root / "metrics" / task, "metrics")
    figures = [written.file(name) for name in written.names("figures/", ".svg")]
    ensembles = root / "decode" / task / "ensemble.json"
    with tracking.open_run(config, "metrics", begun) as log:
        log.metrics(numbers)
        log.artifacts(written.file("cells.csv"), *figures)
        if ensembles.is_file():  # stores from another toolkit have none
            log.register(f"{task} ensembles", ensembles)


if __name__ == "__main__":
    run(metrics, needs_root=True, uses=("store", "baseline", "member_stores", "out"))

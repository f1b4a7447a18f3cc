"""Evaluate the decodes and measures of a task: one cell a number, each with its interval."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from pipeline import tracking
from pipeline.errors import DataError
from pipeline.metrics.calibration import calibration_cells
from pipeline.metrics.cell import Cell, absent_set_cell, headline, write_cells
from pipeline.metrics.decodes import Decode, read_decodes
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation, write_draws
from pipeline.metrics.performance import extra_cells, nll_cells, quality_cells
from pipeline.metrics.rules import Rules
from pipeline.metrics.sentence_detection import copy_through_cells, sentence_detection_cells
from pipeline.metrics.token_errors import token_detection_cells
from pipeline.metrics.token_labels import token_rules
from pipeline.quality.kinds import QUALITIES
from pipeline.report.figures import TaskEvidence, make_figures
from pipeline.run.application import run
from pipeline.run.artifacts import check_seal, read_manifest, seal, sealed_file
from pipeline.run.files import complete_folder, read_json, write_json
from pipeline.run.settings import PipelineConfig, implementation
from pipeline.store import SUBSET

_log = logging.getLogger(__name__)


def metrics(config: PipelineConfig) -> None:
    """Write {io.root}/metrics/{task}/: cells.csv, draws.parquet, headline.json and figures/."""
    root, task = Path(config.io.root), config.task.name
    evaluation = _evaluation(config)
    decoded = root / "decode" / task
    parts = read_manifest(decoded)
    check_seal(root / "uncertainty" / task, parts)
    _check_measures(config, root / "uncertainty" / task)
    everything = read_decodes(decoded, parts, task, config.task.test_sets)
    decodes = {part: one for part, one in everything.items() if one.cell.ensemble != SUBSET}
    cells = _cells(config, decodes, evaluation)
    with complete_folder(root / "metrics" / task) as out:
        write_cells(out / "cells.csv", cells)
        write_draws(out / "draws.parquet", evaluation.draws)
        write_json(out / "headline.json", headline(cells))
        (out / "figures").mkdir()
        _draw(config, everything, out / "figures")
        seal(out, parts)
    _track(config, cells)
    _log.info(
        "%s: %d cells, %d of them without a value and with a reason, from %d decodes",
        task,
        len(cells),
        sum(cell.value is None for cell in cells),
        len(decodes),
    )


def _evaluation(config: PipelineConfig) -> RecordedEvaluation:
    return RecordedEvaluation(
        QUALITIES[config.task.quality],
        config.metrics.resamples,
        config.seed,
        f"measures|weights:{config.uncertainty.weights_from}|eos:{config.uncertainty.eos}",
        Rules(config.metrics.sbleu, config.metrics.prr, config.metrics.aupr),
    )


def _check_measures(config: PipelineConfig, folder: Path) -> None:
    """Refuse measures that were made with other settings than those that cells are to name."""
    settings = config.uncertainty
    named = {"weights_from": settings.weights_from, "eos": settings.eos}
    for path in sorted(folder.glob("*/checks.json")):
        made = read_json(path, "uncertainty").get("settings", named)
        if made != named:
            raise DataError(
                f"{path} must be of measures with the settings of uncertainty that metrics are "
                f"given, {named}, got {made}: run python -m stages.uncertainty with them first"
            )


def _cells(
    config: PipelineConfig, decodes: dict[str, Decode], evaluation: Evaluation
) -> list[Cell]:
    searched = [one for one in decodes.values() if one.is_search]
    forced = [one for one in decodes.values() if one.is_forced]
    extra = {
        name: implementation(dotted, f"metrics.extra_metrics.{name}")
        for name, dotted in config.metrics.extra_metrics.items()
    }
    uncertainty = Path(config.io.root) / "uncertainty" / config.task.name
    is_translation = config.task.family == "translation"
    return [
        *quality_cells(searched, evaluation),
        *nll_cells(forced, config.ensemble.name, evaluation),
        *extra_cells(searched, extra, evaluation),
        *sentence_detection_cells(
            decodes, uncertainty, _baseline(config), is_translation, evaluation
        ),
        *_family_cells(config, decodes, evaluation),
        *calibration_cells(decodes, uncertainty, evaluation),
        *_absent_sets(config),
    ]


def _track(config: PipelineConfig, cells: list[Cell]) -> None:
    root, task = Path(config.io.root), config.task.name
    made, ensembles = root / "metrics" / task, root / "decode" / task / "ensemble.json"
    with tracking.open_run(config, "metrics") as log:
        log.metrics(headline(cells))
        log.metrics({cell.tracked_name: cell.value for cell in cells if cell.value is not None})
        log.artifacts(made / "cells.csv", *sorted((made / "figures").glob("*.svg")))
        if ensembles.is_file():  # stores of another toolkit have none
            log.register(f"{task} ensembles", ensembles)


def _family_cells(
    config: PipelineConfig, decodes: dict[str, Decode], evaluation: Evaluation
) -> Iterator[Cell]:
    """What is told of translations alone, and what of speech alone."""
    if config.task.family == "translation":
        searched = [one for one in decodes.values() if one.is_search]
        return copy_through_cells(searched, evaluation)
    root = Path(config.io.root)
    language = config.task.target_language
    rules = token_rules(
        sealed_file(root / "prepare" / config.task.name, f"fairseq/dict.{language}.txt"),
        config.metrics.aligner,
        config.metrics.token_eos == "include",
    )
    return token_detection_cells(
        decodes, root / "uncertainty" / config.task.name, rules, evaluation
    )


def _draw(config: PipelineConfig, decodes: dict[str, Decode], folder: Path) -> None:
    evidence = TaskEvidence(
        config.task.name,
        decodes,
        Path(config.io.root) / "uncertainty" / config.task.name,
        _baseline(config),
        QUALITIES[config.task.quality],
        config.seed,
    )
    figures = {
        name: implementation(dotted, f"report.figures.{name}")
        for name, dotted in config.report.figures.items()
    }
    make_figures(folder, evidence, figures)


def _baseline(config: PipelineConfig) -> str:
    """The test set that the others are told apart from."""
    return next(name for name, one in config.task.test_sets.items() if one.baseline)


def _absent_sets(config: PipelineConfig) -> list[Cell]:
    """The test sets that could not be prepared, each with its reason."""
    path = Path(config.io.root) / "prepare" / config.task.name / "manifest.json"
    if not path.is_file():
        _log.warning("%s is not there: sets that could not be prepared have no reason", path)
        return []
    absent = read_json(path, "prepare").get("absent_sets", {})
    if not isinstance(absent, dict):
        raise DataError(
            f"{path} must have absent_sets as name and reason, got {absent!r}: "
            "run python -m stages.prepare again"
        )
    sets = config.task.test_sets
    return [
        absent_set_cell(config.task.name, role, reason, " ".join(sets[role].also_called))
        for role, reason in absent.items()
        if role in sets
    ]


if __name__ == "__main__":
    run(metrics)

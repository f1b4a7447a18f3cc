"""Evaluate the decodes and measures of a task: one cell a number, each with its interval."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from pipeline import tracking
from pipeline.config import PipelineConfig, implementation
from pipeline.metrics.calibration_cells import SUBSET, calibration_cells
from pipeline.metrics.cell import Cell, absent_set_cell, write_cells
from pipeline.metrics.copy_through import copy_through_cells, with_copy_through
from pipeline.metrics.decodes import Decode, Measured, read_decodes, read_measures
from pipeline.metrics.draws import RecordedEvaluation, write_draws
from pipeline.metrics.error_detection import error_detection_cells
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import groups_by
from pipeline.metrics.headline import headline
from pipeline.metrics.ood_detection import ood_detection_cells
from pipeline.metrics.performance import extra_cells, nll_cells, quality_cells
from pipeline.metrics.quality import QUALITIES
from pipeline.metrics.rules import Rules
from pipeline.metrics.token_errors import token_error_cells
from pipeline.metrics.token_labels import MeasuredTokens, read_tokens, token_rules
from pipeline.parts import read_manifest, whole_folder, write_json
from pipeline.report.figures import TaskEvidence, make_figures
from stages import run

# Regimes whose first hypothesis is the system's answer.
_SEARCHES = ("beam", "greedy")

_log = logging.getLogger(__name__)


def metrics(config: PipelineConfig) -> None:
    """Write {io.root}/metrics/{task}/: cells.csv, draws.parquet, headline.json and figures/."""
    root = Path(config.io.root)
    extra = {
        name: implementation(dotted, f"metrics.extra_metrics.{name}")
        for name, dotted in config.metrics.extra_metrics.items()
    }
    evaluation = RecordedEvaluation(
        QUALITIES[config.task.quality],
        config.metrics.resamples,
        config.seed,
        f"measures|weights:{config.uncertainty.weights_from}|eos:{config.uncertainty.eos}",
        Rules(config.metrics.sbleu, config.metrics.prr, config.metrics.aupr),
    )
    decoded = root / "decode" / config.task.name
    everything = read_decodes(
        decoded, read_manifest(decoded), config.task.name, config.task.test_sets
    )
    decodes = {part: one for part, one in everything.items() if one.cell.ensemble != SUBSET}
    searched = [one for one in decodes.values() if one.cell.regime in _SEARCHES]
    forced = [one for one in decodes.values() if one.cell.regime == "teacher_forcing"]
    cells = [
        *quality_cells(searched, evaluation),
        *nll_cells(forced, config.ensemble.name, evaluation),
        *extra_cells(searched, extra, evaluation),
        *_detection_cells(config, decodes, evaluation),
        *_family_cells(config, decodes, evaluation),
        *calibration_cells(decodes, root / "uncertainty" / config.task.name, evaluation),
        *_absent_sets(config),
    ]
    with whole_folder(root / "metrics" / config.task.name) as out:
        write_cells(out / "cells.csv", cells)
        write_draws(out / "draws.parquet", evaluation.draws)
        write_json(out / "headline.json", headline(cells))
        (out / "figures").mkdir()
        _draw(config, everything, out / "figures")
    with tracking.open_run(config, "metrics") as log:
        log.metrics(headline(cells))
        log.metrics({cell.tracked_name: cell.value for cell in cells if cell.value is not None})
        folder = root / "metrics" / config.task.name
        log.artifacts(folder / "cells.csv", *sorted((folder / "figures").glob("*.svg")))
        if (decoded / "ensemble.json").is_file():  # stores of another toolkit have none
            log.register(f"{config.task.name} ensembles", decoded / "ensemble.json")
    absent = sum(cell.value is None for cell in cells)
    _log.info(
        "%s: %d cells, %d of them without a value and with a reason, from %d decodes",
        config.task.name,
        len(cells),
        absent,
        len(decodes),
    )


def _detection_cells(
    config: PipelineConfig, decodes: dict[str, Decode], evaluation: Evaluation
) -> list[Cell]:
    """Cells of the ensembles: errors of their searches, and each set against the in-domain one.

    The in-domain decode is that of the same members, combination and regime.
    """
    everything = [
        Measured(
            decode,
            read_measures(_measures(config, part) / "sequence.parquet", len(decode.texts)),
        )
        for part, decode in decodes.items()
        if decode.cell.regime in (*_SEARCHES, "teacher_forcing") and _is_ensemble(decode)
    ]
    if config.task.family == "translation":
        everything = [
            one if one.decode.cell.regime == "teacher_forcing" else with_copy_through(one)
            for one in everything
        ]
    baseline = next(name for name, one in config.task.test_sets.items() if one.baseline)
    in_domain = {
        _decoded_by(one.decode): one for one in everything if one.decode.cell.test_set == baseline
    }
    cells: list[Cell] = []
    for group in groups_by(everything, lambda one: one.decode):
        cell = group[0].decode.cell
        if cell.regime in _SEARCHES:
            cells += error_detection_cells(group, evaluation)
        against = [
            in_domain[_decoded_by(one.decode)]
            for one in group
            if _decoded_by(one.decode) in in_domain
        ]
        if cell.test_set != baseline and len(against) == len(group):
            cells += ood_detection_cells(against, group, evaluation)
    return cells


def _family_cells(
    config: PipelineConfig, decodes: dict[str, Decode], evaluation: Evaluation
) -> list[Cell]:
    """What is told of translations alone, and what of speech alone."""
    searched = {part: one for part, one in decodes.items() if one.cell.regime in _SEARCHES}
    if config.task.family == "translation":
        return list(copy_through_cells(list(searched.values()), evaluation))
    language = config.task.target_language
    dictionary = f"prepare/{config.task.name}/fairseq/dict.{language}.txt"
    rules = token_rules(
        Path(config.io.root) / dictionary,
        config.metrics.aligner,
        config.metrics.token_eos == "include",
    )
    tokens = [
        MeasuredTokens(decode, read_tokens(_measures(config, part) / "token.parquet"))
        for part, decode in searched.items()
        if _is_ensemble(decode)
    ]
    return [
        cell
        for group in groups_by(tokens, lambda one: one.decode)
        for cell in token_error_cells(group, rules, evaluation)
    ]


def _draw(config: PipelineConfig, decodes: dict[str, Decode], folder: Path) -> None:
    evidence = TaskEvidence(
        config.task.name,
        decodes,
        Path(config.io.root) / "uncertainty" / config.task.name,
        next(name for name, one in config.task.test_sets.items() if one.baseline),
        QUALITIES[config.task.quality],
        config.seed,
    )
    figures = {
        name: implementation(dotted, f"report.figures.{name}")
        for name, dotted in config.report.figures.items()
    }
    make_figures(folder, evidence, figures)


def _absent_sets(config: PipelineConfig) -> list[Cell]:
    """The test sets that could not be prepared, each with its reason."""
    path = Path(config.io.root) / "prepare" / config.task.name / "manifest.json"
    if not path.is_file():
        _log.warning("%s is not there: sets that could not be prepared have no reason", path)
        return []
    absent = json.loads(path.read_text(encoding="utf-8")).get("absent_sets", {})
    sets = config.task.test_sets
    return [
        absent_set_cell(config.task.name, role, reason, " ".join(sets[role].also_called))
        for role, reason in absent.items()
        if role in sets
    ]


def _measures(config: PipelineConfig, part: str) -> Path:
    return Path(config.io.root) / "uncertainty" / config.task.name / part


def _is_ensemble(decode: Decode) -> bool:
    return decode.cell.ensemble != "single"


def _decoded_by(decode: Decode) -> tuple[object, ...]:
    cell = decode.cell
    return cell.ensemble, decode.members, cell.hypotheses, cell.regime


if __name__ == "__main__":
    run(metrics)

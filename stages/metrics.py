"""Evaluate the decodes and measures of a task: one cell a number, each with its interval."""

from __future__ import annotations

import logging
from pathlib import Path

from pipeline import tracking
from pipeline.config import PipelineConfig, implementation
from pipeline.metrics.cell import Cell, write_cells
from pipeline.metrics.decodes import Decode, Measured, read_decodes, read_measures
from pipeline.metrics.error_detection import error_detection_cells
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.headline import headline
from pipeline.metrics.ood_detection import ood_detection_cells
from pipeline.metrics.performance import extra_cells, nll_cells, quality_cells
from pipeline.metrics.quality import QUALITIES
from pipeline.parts import read_manifest, whole_folder, write_json
from stages import run

# Regimes whose first hypothesis is the system's answer.
_SEARCHES = ("beam", "greedy")

_log = logging.getLogger(__name__)


def metrics(config: PipelineConfig) -> None:
    """Write {io.root}/metrics/{task}/cells.csv and headline.json."""
    root = Path(config.io.root)
    extra = {
        name: implementation(dotted, f"metrics.extra_metrics.{name}")
        for name, dotted in config.metrics.extra_metrics.items()
    }
    evaluation = Evaluation(
        QUALITIES[config.task.quality],
        config.metrics.resamples,
        config.seed,
        f"measures|weights:{config.uncertainty.weights_from}|eos:{config.uncertainty.eos}",
    )
    folder = root / "decode" / config.task.name
    decodes = read_decodes(folder, read_manifest(folder), config.task.name, config.task.test_sets)
    searched = [one for one in decodes.values() if one.cell.regime in _SEARCHES]
    forced = [one for one in decodes.values() if one.cell.regime == "teacher_forcing"]
    cells = [
        *quality_cells(searched, evaluation),
        *nll_cells(forced, evaluation),
        *extra_cells(searched, extra, evaluation),
        *_detection_cells(config, decodes, evaluation),
    ]
    with whole_folder(root / "metrics" / config.task.name) as out:
        write_cells(out / "cells.csv", cells)
        write_json(out / "headline.json", headline(cells))
    with tracking.open_run(config, "metrics") as log:
        log.metrics(headline(cells))
        log.metrics({cell.tracked_name: cell.value for cell in cells if cell.value is not None})
        log.artifacts(root / "metrics" / config.task.name / "cells.csv")
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
    """Cells of every ensemble decode, each against the in-domain decode of the same combination."""
    folder = Path(config.io.root) / "uncertainty" / config.task.name
    everything = [
        Measured(decode, read_measures(folder / part / "sequence.parquet", len(decode.texts)))
        for part, decode in decodes.items()
        if decode.cell.regime in _SEARCHES and decode.cell.ensemble != "single"
    ]
    baseline = next(name for name, one in config.task.test_sets.items() if one.baseline)
    in_domain = {
        _decoded_by(one.decode): one for one in everything if one.decode.cell.test_set == baseline
    }
    cells: list[Cell] = []
    for measured in everything:
        cells += error_detection_cells(measured, evaluation)
        against = in_domain.get(_decoded_by(measured.decode))
        if against is not None and against is not measured:
            cells += ood_detection_cells(against, measured, evaluation)
    return cells


def _decoded_by(decode: Decode) -> tuple[str, ...]:
    return decode.cell.ensemble, decode.cell.hypotheses, decode.cell.regime


if __name__ == "__main__":
    run(metrics)

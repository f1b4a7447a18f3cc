"""Error detection at the B and T of a point of a sweep; the paper's is at B = 1, without T."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pipeline.metrics.decodes import by_key, read_decodes
from pipeline.metrics.main_numbers import COLUMNS, main_numbers
from pipeline.metrics.measure_files import SentenceMeasures
from pipeline.metrics.sentence_detection import error_detection_cells, read_measured
from pipeline.metrics.task import baseline_test_set, task_evaluation
from pipeline.run.artifacts import Artifact
from pipeline.run.settings import PipelineConfig, iterate_values


def rejection_of_point(config: PipelineConfig) -> dict[str, float]:
    """Return PRR at the largest B and the first T of the settings, named as in `main_numbers`.

    It says how well the measure of B hypotheses finds the errors of the best one.
    """
    root, task = Path(config.io.root), config.task
    beam = max(iterate_values(config.uncertainty.beam))
    temperature = next(iterate_values(config.uncertainty.temperature))

    def at_point(grid: Iterable[SentenceMeasures]) -> dict[bool, SentenceMeasures]:
        return {
            measures.length_norm: replace(measures, values={column: measures.values[column]})
            for measures in grid
            if measures.setting == (beam, temperature, True) and column in measures.values
        }

    column, baseline = COLUMNS["prr"], baseline_test_set(task)
    evaluation = replace(task_evaluation(config), resamples=0)
    decodes = read_decodes(
        root / "decode" / task.name,
        Artifact(root / "decode" / task.name, "decode").parts(),
        task,
    )
    measured = [
        read_measured(decode, root / "uncertainty" / task.name / part, task.family == "translation")
        for part, decode in decodes.items()
        if decode.cell.ensemble == config.ensemble.name and decode.is_search
    ]
    cells = [
        cell
        for replicates in by_key(measured, lambda one: one.decode)
        for cell in error_detection_cells(replicates, evaluation, at_point)
    ]
    numbers = main_numbers(cells, config.ensemble.name, baseline, temperature)
    return {name: value for name, value in numbers.items() if name.partition("/")[0] == "prr"}

"""All cells of a task, from its decodes, its measures and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.calibration import calibration_cells
from pipeline.metrics.cell import Cell, absent_set_cell
from pipeline.metrics.copy_through import copy_through_cells
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation
from pipeline.metrics.external_scores import ExternalScores
from pipeline.metrics.performance import extra_cells, nll_cells, quality_cells
from pipeline.metrics.replicates import averaged_runs, checkpoint_averages
from pipeline.metrics.rules import Rules
from pipeline.metrics.score_cells import score_cells
from pipeline.metrics.sentence_detection import sentence_detection_cells
from pipeline.metrics.token_errors import token_detection_cells
from pipeline.metrics.token_labels import token_rules
from pipeline.quality.registry import quality_metric
from pipeline.quality.tokenisers import check_tokeniser, measure_rules
from pipeline.run.artifacts import Artifact
from pipeline.run.files import read_json
from pipeline.run.settings import PipelineConfig, TaskConfig, implementations, iterate_values


def baseline_test_set(task: TaskConfig) -> str:
    """The in-domain test set that out-of-domain sets are compared with."""
    return next(name for name, test_set in task.test_sets.items() if test_set.baseline)


def task_evaluation(config: PipelineConfig) -> RecordedEvaluation:
    """The evaluation that the settings ask for.

    Raises MachineError if the tokeniser of BLEU does not work on this machine.
    """
    rules = measure_rules(config)
    check_tokeniser(rules.bleu_tokeniser)
    return RecordedEvaluation(
        quality_metric(config.task.quality, rules.bleu_tokeniser, rules.transcripts),
        config.metrics.resamples,
        config.seed,
        rules.signature,
        Rules(config.metrics.sbleu, config.metrics.prr, config.metrics.aupr),
        config.metrics.resample,
    )


def extra_metrics(config: PipelineConfig) -> dict[str, Callable[..., Any]]:
    """The metrics that the settings add, by name."""
    return implementations(config.metrics.extra_metrics, "metrics.extra_metrics")


def check_measure_settings(config: PipelineConfig, measures: Artifact) -> None:
    """Raise DataError if measures were computed with settings that differ from the current ones.

    Measures with more values of B, T or length normalisation than the settings ask for are fine.
    """
    expected = measure_rules(config).as_dict()
    for path in (measures.folder / name for name in measures.names(suffix="/checks.json")):
        checks = read_json(path, "uncertainty")
        actual = checks.get("settings", expected)
        if actual != expected:
            raise DataError(
                f"{path}: measures were computed with {actual}, but the settings ask for "
                f"{expected}. Run python -m stages.uncertainty with these settings first."
            )
        for name, computed in checks.get("grid", {}).items():
            asked = iterate_values(getattr(config.uncertainty, name))
            if missing := [value for value in asked if value not in computed]:
                raise DataError(
                    f"uncertainty.{name}: there are no measures of {missing} in {measures.folder} "
                    f"(it has {computed}). Run python -m stages.uncertainty with these settings "
                    "first."
                )


def task_cells(
    config: PipelineConfig,
    decodes: Mapping[str, Decode],
    uncertainty: Path,
    prepared: Path,
    evaluation: Evaluation,
    scores: Sequence[ExternalScores] = (),
) -> list[Cell]:
    """All cells of a task; `decodes` are by part, with measures in the folder `uncertainty`.

    `prepared` is the folder of stage prepare, which may be missing if the stores come from another
    toolkit. Raises ConfigError if an external score has the name of another metric of the run.
    """
    averaged = averaged_runs(config, decodes)
    averages = checkpoint_averages(decodes, averaged)
    searched = [decode for decode in (*decodes.values(), *averages) if decode.is_search]
    forced = [decode for decode in decodes.values() if decode.is_forced]
    is_translation = config.task.family == "translation"
    baseline = baseline_test_set(config.task)
    data = Artifact(prepared, "prepare", required=False)
    cells = [
        *quality_cells(searched, evaluation),
        *nll_cells(forced, config.ensemble.name, averaged, evaluation),
        *extra_cells(searched, extra_metrics(config), evaluation),
        *sentence_detection_cells(decodes, uncertainty, baseline, is_translation, evaluation),
        *(
            copy_through_cells(searched, evaluation)
            if is_translation
            else _token_cells(config, decodes, uncertainty, data, evaluation)
        ),
        *calibration_cells(decodes, uncertainty, evaluation),
        *_absent_set_cells(config.task, data),
    ]
    of_scores = score_cells(scores, decodes, averages, uncertainty, is_translation, evaluation)
    return [*cells, *_without_clash(of_scores, cells)]


def _without_clash(of_scores: Iterable[Cell], cells: Iterable[Cell]) -> Iterator[Cell]:
    taken = {cell.key for cell in cells}
    for cell in of_scores:
        if cell.key in taken:
            raise ConfigError(
                f"metrics.scores: a score would have the cells of another metric, {cell.metric}. "
                "Choose another name."
            )
        yield cell


def _token_cells(
    config: PipelineConfig,
    decodes: Mapping[str, Decode],
    uncertainty: Path,
    data: Artifact,
    evaluation: Evaluation,
) -> Iterator[Cell]:
    name = f"fairseq/dict.{config.task.target_language}.txt"
    # Models with a tokenizer of their own need no dictionary.
    dictionary = data.file(name) if name in data.names() else data.folder / name
    settings = config.metrics
    rules = token_rules(
        dictionary, settings.aligner, settings.token_eos == "include", settings.transcripts
    )
    return token_detection_cells(decodes, uncertainty, rules, evaluation)


def _absent_set_cells(task: TaskConfig, data: Artifact) -> list[Cell]:
    """A cell with a reason for each test set that could not be prepared."""
    absent = data.description.get("absent_sets", {})
    if not isinstance(absent, dict):
        raise DataError(
            f"{data.folder}/manifest.json: absent_sets must map names to reasons (got {absent!r}). "
            "Run python -m stages.prepare again."
        )
    return [
        absent_set_cell(task.name, name, reason, " ".join(task.test_sets[name].roles))
        for name, reason in absent.items()
        if name in task.test_sets
    ]

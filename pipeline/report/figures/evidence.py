"""The evidence for the figures of a task: its decodes and their measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.bootstrap import Estimate, Resamples, estimate
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.external_scores import ExternalScores
from pipeline.metrics.measure_files import (
    SentenceMeasures,
    first_of_each_length_norm,
    read_measures,
)
from pipeline.quality.registry import Quality
from pipeline.quality.transcripts import WORDS
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric
from pipeline.run.measure_rules import MeasureRules
from pipeline.store import SEARCHES, SUBSET

_MAIN_ENSEMBLE = "random_init"
_SENTENCE_QUALITY = {"bleu": "sentence BLEU", "wer_percent": "sentence WER"}


@dataclass(frozen=True)
class TaskEvidence:
    """The decodes of a task (part -> decode), their measures, and how they are evaluated.

    `uncertainty` holds the measures, one folder per part. `baseline` is the in-domain test set that
    out-of-domain test sets are compared with. `evaluation` has the quality metric, the bootstrap
    and the seed of the cells. `rules` are those of the measures; figures that compute measures at
    further settings use them too. `scores` are external scores, and `cells` all cells of the task.
    """

    task: str
    decodes: Mapping[str, Decode]
    uncertainty: Path
    baseline: str
    evaluation: Evaluation
    rules: MeasureRules
    scores: Sequence[ExternalScores] = ()
    cells: Sequence[Cell] = ()
    _errors: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def quality(self) -> Quality:
        """The quality metric of the task, which scores sentences."""
        return self.evaluation.quality

    @property
    def ensemble(self) -> str:
        """The ensemble in the figures: random_init if the run has it, otherwise the first one."""
        kinds = dict.fromkeys(
            decode.cell.ensemble
            for decode in self.decodes.values()
            if decode.cell.hypotheses != "-" and decode.cell.ensemble not in ("single", SUBSET)
        )
        return _MAIN_ENSEMBLE if _MAIN_ENSEMBLE in kinds or not kinds else next(iter(kinds))

    def searched(self, hypotheses: str = "prex") -> dict[str, str]:
        """Test set -> the part that the ensemble decoded by search with this combination."""
        return self._parts(SEARCHES, hypotheses)

    def forced(self) -> dict[str, str]:
        """Test set -> the part in which the ensemble scored the references."""
        return self._parts(("teacher_forcing",), "reference")

    def baseline_first(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The parts ordered by test set: the baseline, other in-domain sets, all others."""

        def rank(name: str) -> tuple[bool, bool]:
            return name != self.baseline, not self.decodes[parts[name]].in_domain

        return {name: parts[name] for name in sorted(parts, key=rank)}

    def in_domain(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The parts of the in-domain test sets, the baseline first."""
        ordered = self.baseline_first(parts)
        return {name: part for name, part in ordered.items() if self.decodes[part].in_domain}

    def errors(self, part: str) -> FloatArray:
        """The error of each sentence in percent, NaN if it cannot be scored: [sentence]."""
        if part not in self._errors:
            self._errors[part] = self.decodes[part].errors_percent(
                self.quality.sentence_error_percent
            )
        return self._errors[part]

    def estimate(self, metric: WeightedMetric, *used: tuple[str, NDArray[np.bool_]]) -> Estimate:
        """Value and interval of a metric on the resamples of the cells.

        `used` are the parts that the metric compares, each with the sentences [sentence] in use.
        """
        resamples = [
            self.evaluation.resampled(self.decodes[part], sentences) for part, sentences in used
        ]
        return estimate(metric, reduce(Resamples.joined, resamples))

    def one_best_measures(self, part: str) -> SentenceMeasures | None:
        """The length-normalised measures of the 1-best hypotheses; None if B = 1 was not computed.

        Raises DataError if the part has no measures.
        """
        path = self.uncertainty / part / "sequence.parquet"
        grid = read_measures(path, len(self.decodes[part].texts))
        return first_of_each_length_norm(grid).get(True)

    def _parts(self, regimes: tuple[str, ...], hypotheses: str) -> dict[str, str]:
        parts: dict[str, str] = {}
        for part, decode in self.decodes.items():
            cell = decode.cell
            own = (cell.ensemble, cell.hypotheses) == (self.ensemble, hypotheses)
            if own and cell.regime in regimes:
                parts.setdefault(cell.test_set, part)
        return parts


def error_text(quality: Quality) -> str:
    """The error of a sentence in words, in percent."""
    return "100 - sentence BLEU" if quality.name == "bleu" else quality_text(quality)


def quality_text(quality: Quality) -> str:
    """The quality metric of a single sentence in words."""
    name = _SENTENCE_QUALITY.get(quality.name, f"sentence {quality.name}")
    return f"{name} of lower-case words" if quality.transcripts == WORDS else name

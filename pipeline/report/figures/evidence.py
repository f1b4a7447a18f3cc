"""What the figures of a task are made from: its decode stores and the measures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.metrics.decodes import Decode
from pipeline.metrics.measure_files import (
    SentenceMeasures,
    first_of_each_length_norm,
    read_measures,
)
from pipeline.quality.registry import Quality
from pipeline.quality.weighted_metric import FloatArray
from pipeline.store import SEARCHES, SUBSET

_QUALITIES = {"bleu": "sentence BLEU", "wer_percent": "sentence WER"}


def error(quality: Quality) -> str:
    """The error of a sentence in words, with its unit."""
    if quality.name == "bleu":
        return "100 - sentence BLEU, percent"
    return f"{sentence_quality(quality)}, percent"


def sentence_quality(quality: Quality) -> str:
    """The quality metric of a single sentence in words."""
    return _QUALITIES.get(quality.name, f"sentence {quality.name}")


_MAIN = "random_init"


@dataclass(frozen=True)
class TaskEvidence:
    """The decodes of a task (part -> decode), their measures, and how they are judged.

    `uncertainty`: the folder of the measures, a folder a part; `baseline`: the in-domain test set
    that others are told apart from; `quality`: how good a sentence is; `seed`: of drawn subsets.
    """

    task: str
    decodes: Mapping[str, Decode]
    uncertainty: Path
    baseline: str
    quality: Quality
    seed: int
    _errors: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def ensemble(self) -> str:
        """The kind of the ensemble that figures are about: random_init where the run has it."""
        kinds = dict.fromkeys(
            decode.cell.ensemble
            for decode in self.decodes.values()
            if decode.cell.hypotheses != "-" and decode.cell.ensemble not in ("single", SUBSET)
        )
        return _MAIN if _MAIN in kinds or not kinds else next(iter(kinds))

    def searched(self, hypotheses: str = "prex") -> dict[str, str]:
        """Test set -> the part that the ensemble found by search, under one combination."""
        return self._parts(SEARCHES, hypotheses)

    def forced(self) -> dict[str, str]:
        """Test set -> the part in which the ensemble scored its references."""
        return self._parts(("teacher_forcing",), "reference")

    def baseline_first(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The parts with that of the baseline first, then in-domain sets, then the others."""

        def rank(name: str) -> tuple[bool, bool]:
            return name != self.baseline, not self.decodes[parts[name]].in_domain

        return {name: parts[name] for name in sorted(parts, key=rank)}

    def in_domain(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The parts of in-domain test sets, the baseline first."""
        ordered = self.baseline_first(parts)
        return {name: part for name, part in ordered.items() if self.decodes[part].in_domain}

    def errors(self, part: str) -> FloatArray:
        """The error of each sentence in percent, NaN where it cannot be scored."""
        if part not in self._errors:
            self._errors[part] = self.decodes[part].errors_percent(
                self.quality.sentence_error_percent
            )
        return self._errors[part]

    def one_best_measures(self, part: str) -> SentenceMeasures | None:
        """The length-normalised measures of the 1-best hypotheses; None where B = 1 is not there.

        Raises DataError where the part has no measures.
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


def usable(errors: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Errors and values of the sentences that have both."""
    used = ~np.isnan(errors) & ~np.isnan(values)
    return errors[used], values[used]

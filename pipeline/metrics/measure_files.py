"""Read the measures that stage uncertainty wrote for a decode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.errors import DataError
from pipeline.metrics.decodes import Decode
from pipeline.quality.weighted_metric import FloatArray
from pipeline.run.files import read_json
from pipeline.run.measure_rules import GRID

_NOT_MEASURES = {"sentence_id", "flag", *GRID}


@dataclass(frozen=True)
class SentenceMeasures:
    """Sentence-level measures of one store at one (B, T, length norm): name -> [sentence].

    NaN marks a sentence without a value. `why_null` gives the reason for measures that no sentence
    has. `beam` is the setting; `beam_used` is less if the store has fewer hypotheses per sentence.
    `samples` names the decode of measures that come from samples and not from the store.
    """

    beam: int
    temperature: float
    length_norm: bool
    values: Mapping[str, FloatArray]
    why_null: Mapping[str, str]
    beam_used: int
    samples: Mapping[str, str] = field(default_factory=dict)

    def signature(self, name: str) -> str:
        """The signature of the samples of a measure; empty for other measures."""
        return f"; samples {self.samples[name]}" if name in self.samples else ""

    @property
    def setting(self) -> tuple[int, float, bool]:
        """The settings, which must be equal to compare the measures of two decodes."""
        return self.beam, self.temperature, self.length_norm

    def reason(self, name: str) -> str:
        """Why no sentence has the measure."""
        return self.why_null.get(name, "no scored sentence has a value of this measure")


@dataclass(frozen=True)
class MeasuredDecode:
    """A decode and its measures, one item per setting."""

    decode: Decode
    grid: list[SentenceMeasures]

    def with_measure(self, name: str, values: FloatArray, why_null: str) -> MeasuredDecode:
        """Add a measure [sentence] that is the same at every setting.

        why_null: why no sentence has it, if none has.
        """
        grid = [
            replace(
                measures,
                values={**measures.values, name: values},
                why_null={**measures.why_null, **({name: why_null} if why_null else {})},
            )
            for measures in self.grid
        ]
        return replace(self, grid=grid)


def first_of_each_length_norm(grid: Iterable[SentenceMeasures]) -> dict[bool, SentenceMeasures]:
    """Length norm -> the first measures of one hypothesis, where T has no effect."""
    first: dict[bool, SentenceMeasures] = {}
    for measures in grid:
        if measures.beam_used == 1:
            first.setdefault(measures.length_norm, measures)
    return first


def read_measures(path: Path, n_sentence: int) -> list[SentenceMeasures]:
    """Measures of a sequence.parquet, one item per setting, in the order of the file.

    Raises DataError if the file is missing or damaged, or if a setting does not list every sentence
    once.
    """
    frame = read_measure_table(path, ["sentence_id", *GRID])
    by_setting = frame.groupby([*GRID], sort=False)
    checks = path.with_name("checks.json")
    report = read_json(checks, "uncertainty") if checks.is_file() else {}
    names = [
        str(name)
        for name in frame.columns
        if name not in _NOT_MEASURES and pd.api.types.is_numeric_dtype(frame[name])
    ]
    grid = []
    for _, rows in by_setting:
        beam, temperature, length_norm = rows[[*GRID]].iloc[0]
        ordered = rows.sort_values("sentence_id")
        if not np.array_equal(ordered["sentence_id"].to_numpy(), np.arange(n_sentence)):
            raise DataError(
                f"{path}: must list each of the {n_sentence} sentences of its store once for "
                f"B = {beam}, T = {temperature} (got {len(ordered)} rows). "
                "Run python -m stages.uncertainty again."
            )
        values = {name: ordered[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names}
        # The variance of probabilities underflows; its logarithm ranks sentences alike.
        if "ln_var_p" in values:
            values["var_p"] = values.pop("ln_var_p")
        grid.append(
            SentenceMeasures(
                int(beam),
                float(temperature),
                bool(length_norm),
                values,
                report.get("null", {}),
                int(report.get("beam", {}).get("used", {}).get(str(int(beam)), beam)),
            )
        )
    return grid


def read_measure_table(path: Path, required: Sequence[str], **options: Any) -> pd.DataFrame:
    """A table of measures with all `required` columns; `options` go to `pandas.read_parquet`.

    Raises DataError if the file is missing, is damaged or lacks a column.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file. Run python -m stages.uncertainty first.")
    try:
        frame = pd.read_parquet(path, **options)
        frame[list(required)]
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise DataError(
            f"{path}: not a complete table with the columns {', '.join(required)} ({reason}). "
            "Run python -m stages.uncertainty again."
        ) from None
    return frame

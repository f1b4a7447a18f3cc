"""The settings that all cells are computed with, and how a weighted metric fills a cell."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import Resamples, estimate, resample
from pipeline.metrics.cell import KEY_COLUMNS, Cell, Key, number_text
from pipeline.metrics.decodes import Decode
from pipeline.metrics.rules import CORRECT_RULES, Rules
from pipeline.quality.registry import Quality
from pipeline.quality.weighted_metric import (
    FloatArray,
    WeightedMetric,
    mean_of_metrics,
    point_estimate,
)

_DRAW = "draw"


@dataclass(frozen=True)
class Evaluation:
    """The task's quality metric, the bootstrap, and the signature of the uncertainty settings.

    `resamples` is the number of bootstrap resamples and `unit` what they draw: groups of sentences
    ("group") or single sentences ("sentence"). `rules` chooses which rules of the released code are
    computed in addition to the correct ones.
    """

    quality: Quality
    resamples: int
    seed: int
    measures_signature: str
    rules: Rules = CORRECT_RULES
    unit: str = "group"

    def resampled(self, decode: Decode, used: NDArray[np.bool_]) -> Resamples:
        """Resamples of the sentences of a decode that are in use.

        All decodes of a test set, and test sets made of the same sentences, share them. Measures
        therefore stay paired even if some of them lack sentences.
        """
        names, unit = decode.resampling_groups(self.unit)
        return resample([names[i] for i in np.flatnonzero(used)], self.resamples, self.seed, unit)

    def filled(
        self, cell: Cell, metric: WeightedMetric, resamples: Resamples, signature: str
    ) -> Cell:
        """The cell with its numbers and signature; the value is None where it is undefined."""
        estimated = estimate(metric, resamples)
        interval = estimated.interval
        if interval.low is not None:
            self.record(cell.key, estimated.draws)
        return replace(
            cell,
            value=estimated.value,
            low=interval.low,
            high=interval.high,
            n=resamples.n_sentence,
            groups=resamples.n_group,
            reason=interval.reason,
            signature=f"{self.signed(cell, signature)}; bootstrap|n:{self.resamples}"
            f"|seed:{self.seed}|unit:{resamples.unit}|groups:{resamples.n_group}"
            "|interval:expanded-percentile-95",
        )

    def repeated(self, cell: Cell, earlier: Cell) -> Cell:
        """The cell with all that an earlier cell of other settings and the same values has."""
        return replace(earlier, **cell.key._asdict())

    def record(self, key: Key, draws: FloatArray) -> None:
        """Called with the key and the values on the resamples of every cell with an interval."""

    def record_replicates(self, key: Key, values: Mapping[str, float]) -> None:
        """Called with the key of a cell and the values of its replicates: training runs -> value.

        Replicates of the same training runs, such as dropout masks, are averaged first.
        """

    def mean_filled(
        self,
        cell: Cell,
        metrics: Sequence[WeightedMetric],
        runs: Sequence[str],
        resamples: Resamples,
        signature: str,
    ) -> Cell:
        """The cell of the mean over replicates, with their standard deviation as spread.

        `metrics` and `runs` are [replicate]; `runs` has the training runs of each. The interval is
        for the mean, with all replicates on the same resampled sentences.
        """
        filled = self.filled(cell, mean_of_metrics(metrics), resamples, signature)
        if filled.value is None:
            return filled
        n_sentence = resamples.n_sentence
        values = [point_estimate(metric, n_sentence) for metric in metrics]
        by_runs: dict[str, list[float]] = {}
        for name, value in zip(runs, values, strict=True):
            by_runs.setdefault(name, []).append(value)
        means = {name: float(np.mean(of_runs)) for name, of_runs in by_runs.items()}
        self.record_replicates(cell.key, means)
        return with_spread(filled, values)

    def signed(self, cell: Cell, signature: str) -> str:
        """The signature of the decode, followed by the signature of the metric."""
        return "; ".join(text for text in (cell.signature, signature) if text)


def with_spread(cell: Cell, values: Sequence[float]) -> Cell:
    """The cell with the standard deviation over the values that it is the mean of.

    With one value there is no spread. For a single member, the reason says so.
    """
    if len(values) > 1:
        return replace(cell, spread=float(np.std(values, ddof=1)))
    if cell.ensemble == "single":
        return replace(cell, reason=cell.reason or "one member: no spread")
    return cell


@dataclass(frozen=True)
class RecordedEvaluation(Evaluation):
    """An evaluation that keeps the value of every cell on each resample and for each replicate.

    draws: key -> [resample]. All cells of a test set share their resamples. The difference of two
    cells, resample by resample, therefore has an interval of its own. A value is NaN where it is
    undefined. replicates: key -> training runs -> value.
    """

    draws: dict[Key, NDArray[np.float32]] = field(default_factory=dict)
    replicates: dict[Key, dict[str, float]] = field(default_factory=dict)

    def repeated(self, cell: Cell, earlier: Cell) -> Cell:
        """The cell with all that an earlier cell of other settings and the same values has."""
        if earlier.key in self.draws:
            self.draws[cell.key] = self.draws[earlier.key]
        if earlier.key in self.replicates:
            self.record_replicates(cell.key, self.replicates[earlier.key])
        return super().repeated(cell, earlier)

    def record(self, key: Key, draws: FloatArray) -> None:
        """Keep the values of a cell."""
        self.draws[key] = draws.astype(np.float32)

    def record_replicates(self, key: Key, values: Mapping[str, float]) -> None:
        """Keep the values of replicates, in addition to those that the cell already has."""
        self.replicates.setdefault(key, {}).update(values)


_RUNS, _VALUE = "runs", "value"


def write_replicates(path: Path, replicates: Mapping[Key, Mapping[str, float]]) -> None:
    """Write the values of replicates as CSV: one row per key and set of training runs."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*KEY_COLUMNS, _RUNS, _VALUE])
        for key, values in replicates.items():
            writer.writerows([*key, runs, number_text(value)] for runs, value in values.items())


def read_replicates(paths: Iterable[Path]) -> dict[Key, dict[str, float]]:
    """Key -> training runs -> value. Raises DataError if a file is not such a table."""
    replicates: dict[Key, dict[str, float]] = {}
    for path in paths:
        try:
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file, strict=True):
                    key = Key(*(row[name] for name in KEY_COLUMNS))
                    replicates.setdefault(key, {})[row[_RUNS]] = float(row[_VALUE])
        except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path}: not a table of replicates ({reason}). Run python -m stages.metrics again."
            ) from None
    return replicates


def write_draws(path: Path, draws: Mapping[Key, NDArray[np.float32]]) -> None:
    """Write draws as Parquet: one row per key, with a list of numbers in column `draw`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(key, name) for key in draws] for name in KEY_COLUMNS}
    fields = [(name, pa.string()) for name in KEY_COLUMNS] + [(_DRAW, pa.list_(pa.float32()))]
    table = pa.table(columns | {_DRAW: list(draws.values())}, schema=pa.schema(fields))
    pq.write_table(table, path)


def read_draws(paths: Iterable[Path]) -> dict[Key, FloatArray]:
    """Key -> [resample], from several files. Raises DataError if a file is not such a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draws: dict[Key, FloatArray] = {}
    for path in paths:
        try:
            table = pq.read_table(path)
            texts = [table[name].to_pylist() for name in KEY_COLUMNS]
            rows = [np.asarray(draw.values, dtype=np.float64) for draw in table[_DRAW]]
        except (OSError, KeyError, pa.ArrowInvalid) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path}: not a table of draws ({reason}). Run python -m stages.metrics again."
            ) from None
        keys = [Key(*values) for values in zip(*texts, strict=True)]
        draws |= dict(zip(keys, rows, strict=True))
    return draws

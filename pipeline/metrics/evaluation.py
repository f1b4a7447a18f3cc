"""The settings that all cells are computed with, and how a weighted metric fills a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import interval_estimate, resample_weights
from pipeline.metrics.cell import KEY_COLUMNS, Cell, Key
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

    `rules` chooses which rules of the released code are computed in addition to the correct ones.
    """

    quality: Quality
    resamples: int
    seed: int
    measures_signature: str
    rules: Rules = CORRECT_RULES

    def weights(self, used: NDArray[np.bool_]) -> NDArray[np.uint16]:
        """Resample weights of the sentences in use, [resample, sentence in use].

        They are drawn over all sentences of the test set, so that measures stay paired even if some
        of them lack sentences.
        """
        weights = resample_weights(len(used), self.resamples, self.seed)
        return weights if used.all() else weights[:, used]

    def filled(
        self, cell: Cell, metric: WeightedMetric, weights: NDArray[np.uint16], signature: str
    ) -> Cell:
        """The cell with value, interval, n and signature; the value is None where undefined."""
        estimate = interval_estimate(metric, weights)
        return replace(
            cell,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            n=weights.shape[1],
            reason=estimate.reason,
            signature=f"{self.signed(cell, signature)}; bootstrap|n:{self.resamples}"
            f"|seed:{self.seed}|interval:percentile-95",
        )

    def mean_filled(
        self,
        cell: Cell,
        metrics: Sequence[WeightedMetric],
        weights: NDArray[np.uint16],
        signature: str,
    ) -> Cell:
        """The cell of the mean over replicates, with their standard deviation as spread.

        The interval is for the mean, with all replicates on the same resampled sentences.
        """
        filled = self.filled(cell, mean_of_metrics(metrics), weights, signature)
        if filled.value is None:
            return filled
        return with_spread(filled, [point_estimate(metric, weights.shape[1]) for metric in metrics])

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
    """An evaluation that keeps the value of every cell on each resample: key -> [resample].

    All cells of a test set share their resampled sentences. The difference of two cells, resample
    by resample, therefore has an interval of its own.
    """

    draws: dict[Key, NDArray[np.float32]] = field(default_factory=dict)

    def filled(
        self, cell: Cell, metric: WeightedMetric, weights: NDArray[np.uint16], signature: str
    ) -> Cell:
        """The cell that `Evaluation` fills; its draws are kept if all of them are finite."""
        chunks: list[FloatArray] = []

        def recorded(chunk_weights: FloatArray) -> FloatArray:
            chunks.append(metric(chunk_weights))
            return chunks[-1]

        filled = super().filled(cell, recorded, weights, signature)
        # The first chunk is the point estimate.
        draws = np.concatenate([np.empty(0), *chunks[1:]]).astype(np.float32)
        if filled.low is not None and np.isfinite(draws).all():
            self.draws[cell.key] = draws
        return filled


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

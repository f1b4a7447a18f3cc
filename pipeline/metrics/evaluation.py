"""The settings that every cell is computed with, and how a statistic becomes a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import estimate, resample_weights
from pipeline.metrics.cell import KEY_COLUMNS, Cell, Key
from pipeline.metrics.decodes import with_spread
from pipeline.metrics.rules import RIGHT_RULES, Rules
from pipeline.quality.kinds import Quality
from pipeline.quality.statistic import FloatArray, Statistic, mean, point


@dataclass(frozen=True)
class Evaluation:
    """The task's quality metric, the bootstrap, and the signature of the uncertainty settings.

    `rules` says which rules of the released code are computed beside the right ones.
    """

    quality: Quality
    resamples: int
    seed: int
    measures_signature: str
    rules: Rules = RIGHT_RULES

    def weights(self, used: NDArray[np.bool_]) -> NDArray[np.uint16]:
        """Resample weights of the sentences in use: [resample, sentence in use].

        Drawn over all sentences of the test set, so that measures which lack some stay paired.
        """
        weights = resample_weights(len(used), self.resamples, self.seed)
        return weights if used.all() else weights[:, used]

    def filled(
        self, cell: Cell, statistic: Statistic, weights: NDArray[np.uint16], signature: str
    ) -> Cell:
        """The cell with value, interval, n and signature; without a value where undefined."""
        result = estimate(statistic, weights)
        return replace(
            cell,
            value=result.value,
            low=result.low,
            high=result.high,
            n=weights.shape[1],
            reason=result.reason,
            signature=f"{self.signed(cell, signature)}; bootstrap|n:{self.resamples}"
            f"|seed:{self.seed}|interval:percentile-95",
        )

    def mean_filled(
        self,
        cell: Cell,
        statistics: Sequence[Statistic],
        weights: NDArray[np.uint16],
        signature: str,
    ) -> Cell:
        """As `filled`, for the mean over the decodes of a group, with the spread over them.

        The interval is that of the mean, with all decodes on the same resampled sentences.
        """
        filled = self.filled(cell, mean(statistics), weights, signature)
        if filled.value is None:
            return filled
        return with_spread(filled, [point(one, weights.shape[1]) for one in statistics])

    def signed(self, cell: Cell, signature: str) -> str:
        """The signature of the decode and, behind it, that of the metric."""
        return "; ".join(part for part in (cell.signature, signature) if part)


_DRAW = "draw"


@dataclass(frozen=True)
class RecordedEvaluation(Evaluation):
    """An evaluation that keeps what every cell is on each resample: key -> [resample].

    All cells of one test set stand on the same resampled sentences, so the difference of two of
    them, resample by resample, has an interval of its own.
    """

    draws: dict[Key, NDArray[np.float32]] = field(default_factory=dict)

    def filled(
        self, cell: Cell, statistic: Statistic, weights: NDArray[np.uint16], signature: str
    ) -> Cell:
        """The cell as `Evaluation` fills it; draws that are not all finite are not kept."""
        blocks: list[FloatArray] = []

        def recorded(weight: FloatArray) -> FloatArray:
            blocks.append(statistic(weight))
            return blocks[-1]

        filled = super().filled(cell, recorded, weights, signature)
        # The first block is the point estimate.
        draws = np.concatenate([np.empty(0), *blocks[1:]]).astype(np.float32)
        if filled.low is not None and np.isfinite(draws).all():
            self.draws[cell.key] = draws
        return filled


def write_draws(path: Path, draws: Mapping[Key, NDArray[np.float32]]) -> None:
    """Write draws as Parquet: the columns of the key, then a list of numbers in `draw`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(key, name) for key in draws] for name in KEY_COLUMNS}
    fields = [(name, pa.string()) for name in KEY_COLUMNS] + [(_DRAW, pa.list_(pa.float32()))]
    table = pa.table(columns | {_DRAW: list(draws.values())}, schema=pa.schema(fields))
    pq.write_table(table, path)


def read_draws(paths: Iterable[Path]) -> dict[Key, FloatArray]:
    """Key -> [resample], of several files; DataError for a file that is no such table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draws: dict[Key, FloatArray] = {}
    for path in paths:
        try:
            table = pq.read_table(path)
            texts = [table[name].to_pylist() for name in KEY_COLUMNS]
            rows = [np.asarray(one.values, dtype=np.float64) for one in table[_DRAW]]
        except (OSError, KeyError, pa.ArrowInvalid) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path} must be a table of draws, got {reason}: run python -m stages.metrics again"
            ) from None
        keys = [Key(*values) for values in zip(*texts, strict=True)]
        draws |= dict(zip(keys, rows, strict=True))
    return draws

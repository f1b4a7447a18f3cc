"""The bootstrap draws behind the cells, kept so that cells can be compared in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import KEY_COLUMNS, Cell, Key
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.statistic import FloatArray, Statistic

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

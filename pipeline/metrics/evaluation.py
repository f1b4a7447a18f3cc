"""The settings that every cell is computed with, and how a statistic becomes a cell."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.bootstrap import estimate, resample_weights
from pipeline.metrics.cell import Cell
from pipeline.metrics.quality import Quality
from pipeline.metrics.statistic import Statistic


@dataclass(frozen=True)
class Evaluation:
    """The task's quality metric, the bootstrap, and the signature of the uncertainty settings."""

    quality: Quality
    resamples: int
    seed: int
    measures_signature: str

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

    def signed(self, cell: Cell, signature: str) -> str:
        """The signature of the decode and, behind it, that of the metric."""
        return "; ".join(part for part in (cell.signature, signature) if part)

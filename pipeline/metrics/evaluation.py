"""The settings that every cell is computed with, and how a statistic becomes a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.bootstrap import estimate, resample_weights
from pipeline.metrics.cell import Cell
from pipeline.metrics.group import with_spread
from pipeline.metrics.quality import Quality
from pipeline.metrics.rules import RIGHT_RULES, Rules
from pipeline.metrics.statistic import Statistic, mean, point


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

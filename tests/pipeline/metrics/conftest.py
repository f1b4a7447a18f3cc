from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, Measured, Measures
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.quality import QUALITIES

MakeMeasured = Callable[..., Measured]


@pytest.fixture
def evaluation() -> Evaluation:
    return Evaluation(QUALITIES["bleu"], resamples=30, seed=0, measures_signature="measures")


@pytest.fixture
def measured() -> MakeMeasured:
    """A decode of given texts, with one measure `u` at B = 1."""

    def make(
        values: Sequence[float],
        texts: Sequence[str | None] = ("a", "b", "c"),
        references: Sequence[str | None] = ("a", "x", "y z"),
        why_null: str = "",
        sources: Sequence[str] | None = None,
    ) -> Measured:
        cell = Cell("nmt_ende", "newstest14", "random_init", "prex", "beam", signature="sig")
        said = list(sources or ["a source"] * len(texts))
        members = ("seed_1", "seed_2")
        decode = Decode(Path("store.h5"), cell, True, members, said, list(texts), list(references))
        reasons = {"u": why_null} if why_null else {}
        return Measured(decode, [Measures(1, 10.0, True, {"u": np.array(values)}, reasons)])

    return make

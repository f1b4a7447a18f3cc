"""One function of each kind that a user can add. Each is named in one YAML file of conf/."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.decoding.beam import beam_search
from pipeline.decoding.model import EnsembleModel
from pipeline.decoding.test_set import Sentence
from pipeline.ensembles import Ensemble
from pipeline.ensembles.kinds import random_init as members
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.trainer import train_member
from pipeline.report.cells import CellIndex
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.run.settings import DecodeConfig, EnsembleConfig
from pipeline.store import Hypothesis, Store


def short_training(job: TrainJob) -> None:
    """Train for the number of updates given by the setting `steps`."""
    train_member(replace(job, train={**job.train, "updates": job.train["settings"]["steps"]}))


def reversed_members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """Return the ensembles of kind random_init with their members in reverse order."""
    return [
        replace(original, members=original.members[::-1])
        for original in members(train_folder, ensemble)
    ]


def one_best(
    model: EnsembleModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """Search with a beam and keep only the best hypothesis."""
    hypotheses = beam_search(model, sentences, combination, decode)
    return [best_first[:1] for best_first in hypotheses]


def source_words(store: Store) -> NDArray[np.float64]:
    """Measure of sentences: the number of words of the source."""
    return np.array([len(text.split()) for text in store.sources()], float)


def hypothesis_words(store: Store) -> NDArray[np.float64]:
    """Measure of hypotheses: the number of words."""
    return np.array([len(text.split()) for text in store.read("/hypothesis/text")], float)


def word_count(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Metric: the number of words of all hypotheses."""
    return float(sum(len(text.split()) for text in hypotheses))


def first_cell_table(cells: pd.DataFrame) -> Table:
    """Table: the first cell that has a value."""
    first = next(cell for cell in CellIndex(cells).cells if cell.value is not None)
    header = ((Heading("What"), Heading("Value")),)
    rows = (Row((first.column,), (TableCell(first),)),)
    return Table(label="tab:mine", title=f"Mine, of {len(cells)} cells", header=header, rows=rows)

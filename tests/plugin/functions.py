"""One function of every kind that a user may add; each is named in one YAML file."""

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
    """A trainer with its own setting for the number of updates."""
    train_member(replace(job, train={**job.train, "updates": job.train["settings"]["steps"]}))


def reversed_members(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    """An ensemble with the members of another kind in reverse order."""
    return [
        replace(original, members=original.members[::-1])
        for original in members(train_folder, ensemble)
    ]


def one_best(
    model: EnsembleModel, sentences: Sequence[Sentence], combination: str, decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """A search that keeps only the best hypothesis of the beam."""
    hypotheses = beam_search(model, sentences, combination, decode)
    return [best_first[:1] for best_first in hypotheses]


def source_words(
    store: Store, beam: int, temperature: float, length_norm: bool
) -> NDArray[np.float64]:
    """A measure: the number of words of the source."""
    return np.array([len(text.split()) for text in store.sources()], float)


def word_count(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """A metric: the number of words of all hypotheses."""
    return float(sum(len(text.split()) for text in hypotheses))


def first_cell_table(cells: pd.DataFrame) -> Table:
    """A table with the first cell that has a value."""
    first = next(cell for cell in CellIndex(cells).cells if cell.value is not None)
    header = ((Heading("What"), Heading("Value")),)
    rows = (Row((first.column,), (TableCell(first),)),)
    return Table(label="tab:mine", title=f"Mine, of {len(cells)} cells", header=header, rows=rows)

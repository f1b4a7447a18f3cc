"""Tables of external scores: how measures rank sentences by them, and their means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from math import floor, log10

import pandas as pd

from pipeline.metrics.cell import Cell, Key
from pipeline.report.best import BEST_NOTE, competing
from pipeline.report.cells import CellIndex, score_of
from pipeline.report.names import decoder_name, measure_label
from pipeline.report.table import Heading, Row, Table, TableCell

# Statistic, as the metrics of its cells start -> (heading of its column, decimals).
_COLUMNS = {
    "prr": ("PRR, %", 1),
    "pearson": ("Pearson", 3),
    "spearman": ("Spearman", 3),
    "kendall": ("Kendall", 3),
}
_MOST_DECIMALS = 3


def measures_and_scores(cells: pd.DataFrame) -> Table:
    """PRR and correlations of every measure with every external score; no rows without scores."""
    index = CellIndex(cells)
    # One cell for each measure and score.
    compared = (cell for cell in index.cells if score_of(cell) and cell.length_norm == "true")
    blocks = groupby(compared, lambda cell: cell.key._replace(column=""))
    labels = ("Task", "Test set", "Decoder", "Score", "Measure")
    return Table(
        "beyond:scores",
        "Measures of uncertainty against external scores",
        (tuple(Heading(name) for name in (*labels, *(name for name, _ in _COLUMNS.values()))),),
        tuple(row for key, block in blocks for row in _rows(key, list(block), index)),
        (
            "Values are positive where more uncertain sentences have worse scores, whether higher "
            "or lower scores are better.",
            "PRR: prediction rejection ratio; 100 is the order of the scores, 0 random order. "
            "Kendall: tau-b.",
            "One hypothesis per sentence (B = 1), with length normalisation.",
            BEST_NOTE.format(group="column for a score and decoder"),
        ),
    )


def mean_scores(cells: pd.DataFrame) -> Table:
    """The mean of every external score, with a row for each system; no rows without scores."""
    index = CellIndex(cells)
    scores = index.scores
    systems_of_set: dict[tuple[str, str], dict[Key, dict[str, Cell]]] = defaultdict(dict)
    for cell in index.cells:
        if cell.metric == cell.column and cell.metric in scores:
            system = cell.key._replace(column="", metric="")
            systems = systems_of_set[cell.task, cell.test_set]
            systems.setdefault(system, {})[cell.metric] = cell
    decimals = {score: _decimals(score, index.cells) for score in scores}
    rows = [
        Row(
            (index.label(key.task), key.test_set, _decoder(key)),
            tuple(
                TableCell(means[score], decimals=decimals[score]) if score in means else None
                for score in scores
            ),
            rule=number == 0,
        )
        for systems in systems_of_set.values()
        for number, (key, means) in enumerate(systems.items())
    ]
    return Table(
        "beyond:mean-scores",
        "Mean external scores",
        (tuple(Heading(name) for name in ("Task", "Test set", "Decoder", *scores)),),
        tuple(rows),
        ("The mean over the sentences that were scored, in the unit of the score.",),
    )


def _rows(key: Key, block: Sequence[Cell], index: CellIndex) -> list[Row]:
    """One row per measure, for one score of one decoder."""
    score = score_of(block[0])
    columns = [
        competing(
            [
                TableCell(
                    index.cell(cell.key._replace(metric=f"{statistic}_{score}")), decimals=decimals
                )
                for cell in block
            ]
        )
        for statistic, (_, decimals) in _COLUMNS.items()
    ]
    labels = (index.label(key.task), key.test_set, _decoder(key), score)
    return [
        Row((*labels, measure_label(cell.column)), tuple(values), rule=number == 0)
        for number, (cell, *values) in enumerate(zip(block, *columns, strict=True))
    ]


def _decoder(key: Key) -> str:
    return decoder_name(key.ensemble, key.hypotheses, key.regime)


def _decimals(score: str, cells: Sequence[Cell]) -> int:
    """As many decimals as show three digits of the largest mean, 1 to 3."""
    means = [abs(cell.value) for cell in cells if cell.metric == score and cell.value]
    digits_before = floor(log10(max(means))) + 1 if means else 0
    return min(max(_MOST_DECIMALS - digits_before, 1), _MOST_DECIMALS)

"""Cells of what measures of tokens tell, for every ensemble that searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import groups_by
from pipeline.metrics.token_errors import token_error_cells
from pipeline.metrics.token_labels import MeasuredTokens, TokenRules, read_tokens


def token_detection_cells(
    decodes: Mapping[str, Decode],
    uncertainty: Path,
    rules: TokenRules | None,
    evaluation: Evaluation,
) -> Iterator[Cell]:
    """Cells of `token_error_cells` for each group of decodes of one key.

    `decodes` by part, whose measures are in the folder `uncertainty`. Raises DataError for measures
    that are not there.
    """
    tokens = [
        MeasuredTokens(decode, read_tokens(uncertainty / part / "token.parquet"))
        for part, decode in decodes.items()
        if decode.is_search and decode.is_ensemble
    ]
    for group in groups_by(tokens, lambda one: one.decode):
        yield from token_error_cells(group, rules, evaluation)

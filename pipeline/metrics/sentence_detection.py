"""Cells of what measures of sentences tell: wrong ones, and those of another domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.metrics.cell import Cell
from pipeline.metrics.copy_through import with_copy_through
from pipeline.metrics.decodes import Decode, Measured, read_measures
from pipeline.metrics.error_detection import error_detection_cells
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import groups_by
from pipeline.metrics.ood_detection import ood_detection_cells


def sentence_detection_cells(
    decodes: Mapping[str, Decode],
    uncertainty: Path,
    baseline: str,
    source_is_text: bool,
    evaluation: Evaluation,
) -> Iterator[Cell]:
    """Error detection of the ensembles' searches, and each test set against the one `baseline`.

    `decodes` by part, whose measures are in the folder `uncertainty`. The in-domain decode is that
    of the same members, combination and regime; a set without one is left out. Raises DataError
    for measures that are not there.
    """
    everything = [
        _measured(decode, uncertainty / part, source_is_text)
        for part, decode in decodes.items()
        if decode.is_ensemble and (decode.is_search or decode.is_forced)
    ]
    in_domain = {
        _decoded_by(one.decode): one for one in everything if one.decode.cell.test_set == baseline
    }
    for group in groups_by(everything, lambda one: one.decode):
        if group[0].decode.is_search:
            yield from error_detection_cells(group, evaluation)
        against = [
            in_domain[_decoded_by(one.decode)]
            for one in group
            if _decoded_by(one.decode) in in_domain
        ]
        if group[0].decode.cell.test_set != baseline and len(against) == len(group):
            yield from ood_detection_cells(against, group, evaluation)


def _measured(decode: Decode, measures: Path, source_is_text: bool) -> Measured:
    measured = Measured(decode, read_measures(measures / "sequence.parquet", len(decode.texts)))
    return measured if decode.is_forced else with_copy_through(measured, source_is_text)


def _decoded_by(decode: Decode) -> tuple[object, ...]:
    cell = decode.cell
    return cell.ensemble, decode.members, cell.hypotheses, cell.regime

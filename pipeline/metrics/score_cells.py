"""Cells of external scores: their mean, and how well each measure ranks sentences by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pipeline.metrics.cell import Cell
from pipeline.metrics.correlation import weighted_kendall, weighted_pearson, weighted_spearman
from pipeline.metrics.decodes import Decode, by_key, common_cell, decodes_by_key, runs_of_each
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.external_scores import ExternalScores
from pipeline.metrics.measure_files import MeasuredDecode, first_of_each_length_norm
from pipeline.metrics.rejection import weighted_rejection_ratio
from pipeline.metrics.sentence_detection import CONSTANT, present, read_measured
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, weighted_mean

_NOT_SCORED = "no sentence has a score"
# Prefix of the metric -> (how it is computed from badness and measure, its signature).
_STATISTICS: Mapping[str, tuple[Callable[[ArrayLike, ArrayLike], WeightedMetric], str]] = {
    "prr": (weighted_rejection_ratio, "PRR|ties:mean"),
    "pearson": (weighted_pearson, "Pearson"),
    "spearman": (weighted_spearman, "Spearman|ties:mean"),
    "kendall": (weighted_kendall, "Kendall|ties:b"),
}


def score_cells(
    scores: Sequence[ExternalScores],
    decodes: Mapping[str, Decode],
    averages: Sequence[Decode],
    uncertainty: Path,
    source_is_text: bool,
    evaluation: Evaluation,
) -> Iterator[Cell]:
    """Cells of each kind of score, for the decodes that have it.

    `decodes` are by part, with their measures in the folder `uncertainty`; `averages` are decodes
    by averages of checkpoints. The metrics of score S are S, its mean, and prr_S, pearson_S,
    spearman_S and kendall_S of every measure at B = 1. Correlations are those of the measure with
    the badness of the sentence, so that a good measure has positive values. Raises DataError if
    measures are missing. Source: Fomicheva et al., "Unsupervised quality estimation for neural
    machine translation", TACL 8, 2020.
    """
    measured_decodes = [
        read_measured(decode, uncertainty / part, source_is_text)
        for part, decode in decodes.items()
        if decode.is_ensemble and any(kind.has(decode) for kind in scores)
    ]
    for kind in scores:
        yield from _mean_cells(kind, filter(kind.has, (*decodes.values(), *averages)), evaluation)
        scored = [measured for measured in measured_decodes if kind.has(measured.decode)]
        for replicates in by_key(scored, lambda measured: measured.decode):
            yield from _measure_cells(kind, replicates, evaluation)


def _mean_cells(
    kind: ExternalScores, decodes: Iterator[Decode], evaluation: Evaluation
) -> Iterator[Cell]:
    """The mean score, as it is in the file, of each set of replicates."""
    for replicates in decodes_by_key(decodes):
        cell = replace(common_cell(replicates), column=kind.name, metric=kind.name)
        values = [kind.values[decode.path] for decode in replicates]
        used = present(values)
        if not used.any():
            yield replace(cell, reason=_NOT_SCORED)
            continue
        yield evaluation.mean_filled(
            cell,
            [weighted_mean(of_decode[used]) for of_decode in values],
            runs_of_each(replicates),
            evaluation.resampled(replicates[0], used),
            f"mean|{kind.signature(replicates)}",
        )


def _measure_cells(
    kind: ExternalScores, replicates: Sequence[MeasuredDecode], evaluation: Evaluation
) -> Iterator[Cell]:
    """The cells of every measure; each is the mean over replicates."""
    decodes = [measured.decode for measured in replicates]
    badness = [kind.badness(decode) for decode in decodes]
    grids = [first_of_each_length_norm(measured.grid) for measured in replicates]
    for length_norm, first in grids[0].items():
        common = replace(common_cell(decodes), B="1", length_norm=str(length_norm).lower())
        measures = [grid[length_norm] for grid in grids if length_norm in grid]
        for name in first.values:
            values = [of_decode.values[name] for of_decode in measures if name in of_decode.values]
            for statistic in _STATISTICS:
                cell = replace(common, column=name, metric=f"{statistic}_{kind.name}")
                if len(values) < len(replicates):
                    yield replace(cell, reason="not every ensemble of this kind has the measure")
                elif present(badness).any() and not present([*badness, *values]).any():
                    yield replace(cell, reason=first.reason(name))
                else:
                    signature = kind.signature(decodes)
                    yield _cell(cell, badness, values, decodes, signature, evaluation)


def _cell(
    cell: Cell,
    badness: Sequence[FloatArray],
    values: Sequence[FloatArray],
    decodes: Sequence[Decode],
    signature: str,
    evaluation: Evaluation,
) -> Cell:
    """The cell of one measure and statistic, from the sentences that have both."""
    statistic = cell.metric.partition("_")[0]
    used = present([*badness, *values])
    worse, uncertain = ([of[used] for of in arrays] for arrays in (badness, values))
    reason = _why_undefined(statistic, worse, uncertain)
    if reason:
        return replace(cell, n=int(used.sum()), reason=reason)
    compute, own_signature = _STATISTICS[statistic]
    filled = evaluation.mean_filled(
        cell,
        [compute(*pair) for pair in zip(worse, uncertain, strict=True)],
        runs_of_each(decodes),
        evaluation.resampled(decodes[0], used),
        f"{evaluation.measures_signature}; {own_signature}|{signature}",
    )
    return replace(filled, reason=CONSTANT) if all(map(_is_constant, uncertain)) else filled


def _why_undefined(
    statistic: str, badness: Sequence[FloatArray], values: Sequence[FloatArray]
) -> str:
    """Why the statistic has no value; empty if it has one. Both arguments are [replicate]."""
    n = len(badness[0])
    if n < 2:
        return "a single sentence has no order" if n else _NOT_SCORED
    if any(map(_is_constant, badness)):
        return "all scores are equal"
    if statistic == "prr":
        return ""
    if any(map(_is_constant, values)):
        return CONSTANT
    infinite = np.isinf(values).any(axis=0).sum()
    if statistic == "pearson" and infinite:
        return f"the measure is infinite for {infinite} sentences"
    return ""


def _is_constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())

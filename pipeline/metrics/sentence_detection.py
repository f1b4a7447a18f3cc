"""Cells of sentence-level detection: of errors, and of out-of-domain sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import Cell, number_text
from pipeline.metrics.copy_through import with_copy_through
from pipeline.metrics.decodes import Decode, by_key, common_cell, runs_of_each, scorable_in_all
from pipeline.metrics.detection import weighted_roc_auc
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import (
    MeasuredDecode,
    SentenceMeasures,
    first_of_each_length_norm,
    read_measures,
)
from pipeline.metrics.repeated_cells import RepeatedCells
from pipeline.metrics.rules import RejectionRule, correlation_rule, rejection_rules
from pipeline.metrics.sample_measures import with_measures_of_samples
from pipeline.metrics.source_length import with_source_length
from pipeline.quality.weighted_metric import FloatArray

CONSTANT = "the measure is the same for every sentence"
# Measures of the in-domain set and of the set to be detected, by the same ensemble.
_Pair = tuple[SentenceMeasures, SentenceMeasures]
# Selects the measures of each length norm from those at every setting.
_Chosen = Callable[[Iterable[SentenceMeasures]], dict[bool, SentenceMeasures]]


def sentence_detection_cells(
    decodes: Mapping[str, Decode],
    uncertainty: Path,
    baseline: str,
    source_is_text: bool,
    evaluation: Evaluation,
) -> Iterator[Cell]:
    """Cells of error detection in searches, by ensembles and single members, and of OOD detection.

    `decodes` are by part, with their measures in the folder `uncertainty`. For OOD detection, a
    test set is compared with the decode of the test set `baseline` by the same members, combination
    and regime; without such a decode it has no cells. Raises DataError if measures are missing.
    """
    measured_decodes = with_measures_of_samples(
        [
            read_measured(decode, uncertainty / part, source_is_text)
            for part, decode in decodes.items()
            if decode.is_ensemble or decode.is_search
        ]
    )
    in_domain = {
        _system(measured.decode): measured
        for measured in measured_decodes
        if measured.decode.cell.test_set == baseline
    }
    for replicates in by_key(measured_decodes, lambda measured: measured.decode):
        if replicates[0].decode.is_search:
            yield from error_detection_cells(replicates, evaluation)
            if replicates[0].decode.in_domain:
                yield from correlation_cells(replicates, evaluation)
        against = [
            in_domain[_system(measured.decode)]
            for measured in replicates
            if _system(measured.decode) in in_domain
        ]
        if replicates[0].decode.cell.test_set != baseline and len(against) == len(replicates):
            yield from ood_detection_cells(against, replicates, evaluation)


def read_measured(decode: Decode, measures: Path, source_is_text: bool) -> MeasuredDecode:
    """A decode with its measures in the folder `measures`, and those of its texts.

    They are the length of the sources and their copied share; references have neither. Raises
    DataError if the measures are missing.
    """
    grid = read_measures(measures / "sequence.parquet", len(decode.texts))
    measured = MeasuredDecode(decode, grid)
    if decode.is_forced:
        return measured
    return with_source_length(with_copy_through(measured, source_is_text), source_is_text)


def _system(decode: Decode) -> tuple[object, ...]:
    """The system that decoded; equal for two test sets that can be compared."""
    cell = decode.cell
    return cell.ensemble, decode.members, cell.hypotheses, cell.regime


def error_detection_cells(
    replicates: Sequence[MeasuredDecode],
    evaluation: Evaluation,
    chosen: _Chosen = first_of_each_length_norm,
) -> Iterator[Cell]:
    """Prediction rejection ratio in percent of every measure at B = 1, where T has no effect.

    chosen: selects the measures of each length norm, by default those at B = 1. A cell is the mean
    over replicates. The error of a sentence is 100 - sentence BLEU, or its WER. There is a cell for
    each rule of the evaluation. Source: `tab:sequence-error-detection`.
    """
    rules = rejection_rules(evaluation.quality, evaluation.rules)
    yield from _error_cells(replicates, rules, evaluation, chosen)


def correlation_cells(
    replicates: Sequence[MeasuredDecode], evaluation: Evaluation
) -> Iterator[Cell]:
    """Spearman's correlation of every measure at B = 1 with the error, as for PRR.

    A good measure has a positive correlation.
    """
    rules = [correlation_rule(evaluation.quality)]
    yield from _error_cells(replicates, rules, evaluation, first_of_each_length_norm)


def _error_cells(
    replicates: Sequence[MeasuredDecode],
    rules: Sequence[RejectionRule],
    evaluation: Evaluation,
    chosen: _Chosen,
) -> Iterator[Cell]:
    known = RepeatedCells(evaluation)
    decodes = [measured.decode for measured in replicates]
    scorable = scorable_in_all(decodes)
    grids = [chosen(measured.grid) for measured in replicates]
    for rule in rules:
        errors_percent = [decode.errors_percent(rule.sentence_error_percent) for decode in decodes]
        for length_norm, first in grids[0].items():
            measures = [grid[length_norm] for grid in grids if length_norm in grid]
            setting = str(length_norm).lower()
            common = replace(common_cell(decodes), B="1", length_norm=setting, metric=rule.metric)
            for name in first.values:
                cell = replace(common, column=name)
                if not scorable.any():
                    yield replace(cell, reason=decodes[0].why_not_scorable)
                elif len(measures) < len(replicates) or not _have(name, measures):
                    yield replace(cell, reason="not every ensemble of this kind has the measure")
                else:
                    values = [of_decode.values[name] for of_decode in measures]
                    fill = partial(
                        _rejection_cell,
                        errors_percent=errors_percent,
                        values=values,
                        samples=first.signature(name),
                        rule=rule,
                        decodes=decodes,
                        evaluation=evaluation,
                    )
                    cell = known.filled(cell, values, fill)
                    yield cell if cell.n else replace(cell, reason=first.reason(name))


def _rejection_cell(
    cell: Cell,
    errors_percent: Sequence[FloatArray],
    values: Sequence[FloatArray],
    samples: str,
    rule: RejectionRule,
    decodes: Sequence[Decode],
    evaluation: Evaluation,
) -> Cell:
    """The cell of one measure; n is 0 if no sentence has both an error and a value."""
    used = present([*errors_percent, *values])
    if not used.any():
        return cell
    errors = [of_decode[used] for of_decode in errors_percent]
    if len(errors[0]) == 1:
        return replace(cell, n=1, reason="a single sentence has no order")
    if any((of_decode == of_decode[0]).all() for of_decode in errors):
        return replace(cell, n=len(errors[0]), reason="all errors are equal")
    uncertainties = [of_decode[used] for of_decode in values]
    filled = evaluation.mean_filled(
        cell,
        [rule.score(*pair) for pair in zip(errors, uncertainties, strict=True)],
        runs_of_each(decodes),
        evaluation.resampled(decodes[0], used),
        f"{evaluation.measures_signature}; {rule.signature}{samples}",
    )
    constant = all((of_decode == of_decode[0]).all() for of_decode in uncertainties)
    return replace(filled, reason=CONSTANT) if constant else filled


def ood_detection_cells(
    in_domain: Sequence[MeasuredDecode],
    out_of_domain: Sequence[MeasuredDecode],
    evaluation: Evaluation,
) -> Iterator[Cell]:
    """ROC-AUC in percent of every measure at every setting of the out-of-domain decodes.

    `out_of_domain` are replicates; `in_domain` are the in-domain decodes of the same ensembles, in
    the same order. A cell is the mean over them. References have no beam: with teacher forcing
    B = 1 and T has no effect. Source: `tab:ood-detection`, `apn-tab:ood-detection-tf`.
    """
    cell = common_cell([measured.decode for measured in out_of_domain])
    against = common_cell([measured.decode for measured in in_domain])
    cell = replace(
        cell, metric="roc_auc", signature=f"{cell.signature}; against {against.signature}"
    )
    forced = cell.regime == "teacher_forcing"
    known = RepeatedCells(evaluation)
    for outside in _distinct_settings(out_of_domain[0], forced):
        pairs = [
            pair
            for measured in zip(in_domain, out_of_domain, strict=True)
            if (pair := _pair_at(outside.setting, *measured, forced)) is not None
        ]
        used = max((side.beam_used for pair in pairs for side in pair), default=outside.beam_used)
        common = replace(
            cell,
            T="" if forced else number_text(outside.temperature),
            B=str(outside.beam),
            length_norm=str(outside.length_norm).lower(),
        )
        for name in outside.values:
            named = replace(common, column=name)
            if len(pairs) < len(out_of_domain) or not all(_have(name, pair) for pair in pairs):
                yield replace(named, reason="the in-domain set lacks this measure")
            else:
                fill = partial(
                    _roc_auc_cell,
                    pairs=pairs,
                    against=in_domain,
                    replicates=out_of_domain,
                    evaluation=evaluation,
                )
                values = (side.values[name] for pair in pairs for side in pair)
                filled = known.filled(named, values, fill)
                if used < outside.beam and filled.value is not None and filled.reason != CONSTANT:
                    fewer = f"the decodes have no more than {used} hypotheses per sentence"
                    reasons = (filled.reason, fewer) if filled.reason else (fewer,)
                    filled = replace(filled, reason="; ".join(reasons))
                yield filled


def _distinct_settings(measured: MeasuredDecode, forced: bool) -> list[SentenceMeasures]:
    """The measures at the settings that make a difference."""
    if forced:
        return list(first_of_each_length_norm(measured.grid).values())
    return measured.grid


def _pair_at(
    setting: tuple[int, float, bool],
    in_domain: MeasuredDecode,
    out_of_domain: MeasuredDecode,
    forced: bool,
) -> _Pair | None:
    """The measures of two decodes at one setting; None if either lacks it."""
    inside, outside = (
        next((at for at in _distinct_settings(measured, forced) if at.setting == setting), None)
        for measured in (in_domain, out_of_domain)
    )
    return None if inside is None or outside is None else (inside, outside)


def _have(name: str, measures: Sequence[SentenceMeasures]) -> bool:
    return all(name in at_setting.values for at_setting in measures)


def _roc_auc_cell(
    cell: Cell,
    pairs: Sequence[_Pair],
    against: Sequence[MeasuredDecode],
    replicates: Sequence[MeasuredDecode],
    evaluation: Evaluation,
) -> Cell:
    """The cell of one measure from all replicates."""
    name = cell.column
    used_inside = present([inside.values[name] for inside, _ in pairs])
    used_outside = present([outside.values[name] for _, outside in pairs])
    in_domain, out_of_domain = pairs[0]
    if not used_inside.any() and not used_outside.any():
        return replace(cell, reason=out_of_domain.reason(name))
    if not used_outside.any():
        return replace(cell, reason=f"one class only, in-domain: {out_of_domain.reason(name)}")
    if not used_inside.any():
        return replace(cell, reason=f"one class only, out-of-domain: {in_domain.reason(name)}")
    scores = [
        (inside.values[name][used_inside], outside.values[name][used_outside])
        for inside, outside in pairs
    ]
    resamples_inside, resamples_outside = (
        evaluation.resampled(measured[0].decode, used)
        for measured, used in ((against, used_inside), (replicates, used_outside))
    )
    filled = evaluation.mean_filled(
        cell,
        [weighted_roc_auc(inside, outside) for inside, outside in scores],
        runs_of_each([measured.decode for measured in replicates]),
        resamples_inside.joined(resamples_outside),
        f"{evaluation.measures_signature}; ROC-AUC|ties:half{out_of_domain.signature(name)}",
    )
    if all((np.concatenate(pair) == pair[0][0]).all() for pair in scores):
        return replace(filled, reason=CONSTANT)
    return filled


def present(values: Sequence[FloatArray]) -> NDArray[np.bool_]:
    """Which sentences have a value in all arrays, [sentence]."""
    return np.asarray(~np.isnan(np.stack(values)).any(axis=0))

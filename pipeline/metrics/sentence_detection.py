"""Cells of what measures of sentences tell: wrong ones, and those of another domain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import COPY_THROUGH, Cell, number_text
from pipeline.metrics.decodes import (
    Decode,
    Measured,
    Measures,
    first_of_each_length_norm,
    groups,
    groups_by,
    read_measures,
    scorable_in_all,
    shared_cell,
    texts,
)
from pipeline.metrics.detection import roc_auc_statistic
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.rules import RejectionRule, rejection_rules
from pipeline.quality.statistic import FloatArray, Statistic, ratio

CONSTANT = "the measure is the same for every sentence"


def error_detection_cells(group: Sequence[Measured], evaluation: Evaluation) -> Iterator[Cell]:
    """Prediction rejection ratio in percent of every measure at B = 1, where T has no effect.

    `group` holds the decodes of one key, of which the mean is taken. Error of a sentence:
    100 - sentence BLEU, or its WER; a cell for each of the rules of the evaluation.
    Source: `tab:sequence-error-detection`.
    """
    decodes = [one.decode for one in group]
    scorable = scorable_in_all(decodes)
    grids = [first_of_each_length_norm(one.grid) for one in group]
    for rule in rejection_rules(evaluation.quality, evaluation.rules):
        errors_percent = [_errors_percent(decode, scorable, rule) for decode in decodes]
        for length_norm, first in grids[0].items():
            measures = [grid[length_norm] for grid in grids if length_norm in grid]
            setting = str(length_norm).lower()
            shared = replace(shared_cell(decodes), B="1", length_norm=setting, metric=rule.metric)
            for name in first.values:
                cell = replace(shared, column=name)
                if not scorable.any():
                    yield replace(cell, reason=decodes[0].why_not_scorable)
                elif len(measures) < len(group) or any(name not in one.values for one in measures):
                    yield replace(cell, reason="not every ensemble of this kind has the measure")
                else:
                    values = [one.values[name] for one in measures]
                    cell = _rejection_cell(cell, errors_percent, values, rule, evaluation)
                    yield cell if cell.n else replace(cell, reason=first.reason(name))


def _errors_percent(decode: Decode, scorable: NDArray[np.bool_], rule: RejectionRule) -> FloatArray:
    """The error of each sentence, NaN where it cannot be scored."""
    error_percent = np.full(len(scorable), np.nan)
    error_percent[scorable] = rule.sentence_error_percent(*texts(decode, scorable))
    return error_percent


def _rejection_cell(
    cell: Cell,
    errors_percent: Sequence[FloatArray],
    values: Sequence[FloatArray],
    rule: RejectionRule,
    evaluation: Evaluation,
) -> Cell:
    """The cell of one measure; n = 0 where no sentence has both an error and a value."""
    used = np.asarray(~np.isnan(np.stack([*errors_percent, *values])).any(axis=0))
    if not used.any():
        return cell
    errors = [one[used] for one in errors_percent]
    if len(errors[0]) == 1:
        return replace(cell, n=1, reason="a single sentence has no order")
    if any((one == one[0]).all() for one in errors):
        return replace(cell, n=len(errors[0]), reason="all errors are equal")
    kept = [one[used] for one in values]
    filled = evaluation.mean_filled(
        cell,
        [rule.statistic(error, value) for error, value in zip(errors, kept, strict=True)],
        evaluation.weights(used),
        f"{evaluation.measures_signature}; {rule.signature}",
    )
    same_for_all = all((one == one[0]).all() for one in kept)
    return replace(filled, reason=CONSTANT) if same_for_all else filled


# The in-domain measures of an ensemble and those of the set to be told apart.
Pair = tuple[Measures, Measures]


def ood_detection_cells(
    in_domain: Sequence[Measured], others: Sequence[Measured], evaluation: Evaluation
) -> Iterator[Cell]:
    """ROC-AUC in percent of every measure at every setting of the set to be told apart.

    `others` holds the decodes of one key, of which the mean is taken, `in_domain` the in-domain
    decode of each one's own ensemble, in the same order. References have no beam: by teacher
    forcing B = 1 and T has no effect. Source: `tab:ood-detection`, `apn-tab:ood-detection-tf`.
    """
    cell = shared_cell([one.decode for one in others])
    against = shared_cell([one.decode for one in in_domain])
    cell = replace(
        cell, metric="roc_auc", signature=f"{cell.signature}; against {against.signature}"
    )
    forced = cell.regime == "teacher_forcing"
    for outside in _points(others[0], forced):
        shared = replace(
            cell,
            T="" if forced else number_text(outside.temperature),
            B=str(outside.beam),
            length_norm=str(outside.length_norm).lower(),
        )
        pairs = [
            pair
            for inside, other in zip(in_domain, others, strict=True)
            if (pair := _pair(inside, other, outside, forced)) is not None
        ]
        for name in outside.values:
            named = replace(shared, column=name)
            if len(pairs) < len(others) or not all(_have(name, pair) for pair in pairs):
                yield replace(named, reason="the in-domain set lacks this measure")
            else:
                yield _roc_auc_cell(named, pairs, evaluation)


def _points(measured: Measured, forced: bool) -> list[Measures]:
    """The settings that make a difference."""
    if forced:
        return list(first_of_each_length_norm(measured.grid).values())
    return measured.grid


def _pair(inside: Measured, other: Measured, point: Measures, forced: bool) -> Pair | None:
    """The measures of two decodes at one setting; None where one lacks it."""
    first, second = (
        next((at for at in _points(one, forced) if at.setting == point.setting), None)
        for one in (inside, other)
    )
    return None if first is None or second is None else (first, second)


def _have(name: str, pair: Pair) -> bool:
    return all(name in one.values for one in pair)


def _roc_auc_cell(cell: Cell, pairs: Sequence[Pair], evaluation: Evaluation) -> Cell:
    name = cell.column
    used_inside = _present([inside.values[name] for inside, _ in pairs])
    used_outside = _present([outside.values[name] for _, outside in pairs])
    in_domain, other = pairs[0]
    if not used_inside.any() and not used_outside.any():
        return replace(cell, reason=other.reason(name))
    if not used_outside.any():
        return replace(cell, reason=f"one class only, in-domain: {other.reason(name)}")
    if not used_inside.any():
        return replace(cell, reason=f"one class only, out-of-domain: {in_domain.reason(name)}")
    scores = [
        (inside.values[name][used_inside], outside.values[name][used_outside])
        for inside, outside in pairs
    ]
    filled = evaluation.mean_filled(
        cell,
        [roc_auc_statistic(inside, outside) for inside, outside in scores],
        np.concatenate([evaluation.weights(used_inside), evaluation.weights(used_outside)], axis=1),
        f"{evaluation.measures_signature}; ROC-AUC|ties:half",
    )
    if all((np.concatenate(both) == both[0][0]).all() for both in scores):
        return replace(filled, reason=CONSTANT)
    if 1 in (used_inside.sum(), used_outside.sum()):
        return replace(filled, low=None, high=None, reason="a single sentence has no interval")
    return filled


def _present(values: Sequence[FloatArray]) -> NDArray[np.bool_]:
    """Which sentences have a value in every decode of the group: [sentence]."""
    return np.asarray(~np.isnan(np.stack(values)).any(axis=0))


_WORD = re.compile(r"\w+")
_NO_WORD = "no sentence has a hypothesis and a word in its source"
_NO_TEXT = "speech has no source text"
_SIGNATURE = "copied|words:letters-and-digits|case:mixed|counts:multiset"


@dataclass(frozen=True)
class CopyCounts:
    """Source words and those of them that the output repeats, each [sentence]."""

    copied: FloatArray
    source_words: FloatArray


def copy_counts(sources: Sequence[str], outputs: Sequence[str]) -> CopyCounts:
    """Count the words of each source and how many of them stand in its output too."""
    words = [
        (Counter(_WORD.findall(source)), Counter(_WORD.findall(output)))
        for source, output in zip(sources, outputs, strict=True)
    ]
    return CopyCounts(
        np.array([(source & output).total() for source, output in words], dtype=np.float64),
        np.array([source.total() for source, _ in words], dtype=np.float64),
    )


def copied_percent_statistic(counts: CopyCounts) -> Statistic:
    """Percent of all source words that were copied, as a function of weights."""
    return lambda weights: 100 * ratio(weights @ counts.copied, weights @ counts.source_words)


def copy_through_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """Share of the source's words that the output repeats, in percent, of each group of decodes."""
    for group in groups(decodes):
        cell = replace(shared_cell(group), column=COPY_THROUGH, metric="copied_percent")
        counts = [_counts(decode) for decode in group]
        used = np.all([one.source_words > 0 for one in counts], axis=0)
        if not used.any():
            yield replace(cell, reason=_NO_WORD)
            continue
        statistics = [
            copied_percent_statistic(CopyCounts(one.copied[used], one.source_words[used]))
            for one in counts
        ]
        yield evaluation.mean_filled(cell, statistics, evaluation.weights(used), _SIGNATURE)


def with_copy_through(measured: Measured, source_is_text: bool) -> Measured:
    """A decode whose measures include the copied share of each source, the same at every setting.

    A sentence without a hypothesis or without a word in its source has none, nor has any sentence
    of speech, whose source is a sound.
    """
    if source_is_text:
        counts = _counts(measured.decode)
        share, why_null = ratio(counts.copied, counts.source_words), _NO_WORD
    else:
        share, why_null = np.full(len(measured.decode.texts), np.nan), _NO_TEXT
    grid = [
        replace(
            one,
            values={**one.values, COPY_THROUGH: share},
            why_null={**one.why_null, COPY_THROUGH: why_null},
        )
        for one in measured.grid
    ]
    return replace(measured, grid=grid)


def _counts(decode: Decode) -> CopyCounts:
    """Of every sentence; 0 words where there is no hypothesis to compare with."""
    sources = [
        source if text is not None else ""
        for source, text in zip(decode.sources, decode.texts, strict=True)
    ]
    return copy_counts(sources, [text or "" for text in decode.texts])


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

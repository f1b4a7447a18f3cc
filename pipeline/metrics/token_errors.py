"""Cells of token-level error detection: average precision of token measures against labels.

Beyond the paper, the same is computed for words, scored by the largest or the mean score of their
tokens, and for missing words, scored by the token that follows the gap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, by_key, common_cell, runs_of_each, scorable_in_all
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.rules import PrecisionRule, precision_rules
from pipeline.metrics.token_labels import (
    LabelledTokens,
    MeasuredTokens,
    TokenLabels,
    TokenRules,
    UnspelledTextError,
    read_tokens,
    token_labels,
)
from pipeline.quality.transcripts import transcripts_signature
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, ratio

_log = logging.getLogger(__name__)

_POSITION_COLUMNS = ("sentence_id", "hypothesis", "position", "token_id")
# (tokens of a decode, their labels) -> the metric
_TokenMetric = Callable[[MeasuredTokens, TokenLabels], WeightedMetric]
# (labels, measure [row]) -> the labels to be detected, and the score of each
_Target = Callable[[TokenLabels, FloatArray], tuple[LabelledTokens, FloatArray]]


@dataclass(frozen=True)
class _CellPlan:
    """The plan for one cell: its metric, and the reason if it has no value.

    With `every_eos`, EOS is included even if the rules exclude it.
    """

    column: str
    metric: str
    weighted: _TokenMetric
    why_undefined: str
    signature: str
    every_eos: bool = False


def token_detection_cells(
    decodes: Mapping[str, Decode],
    uncertainty: Path,
    rules_of: Callable[[Decode], TokenRules | None],
    evaluation: Evaluation,
) -> Iterator[Cell]:
    """Compute `token_error_cells` for each set of replicates of the ensembles' searches.

    `decodes` are by part, with their measures in the folder `uncertainty`. `rules_of` gives the
    rules of a decode. Raises DataError if measures are missing.
    """
    measured = [
        MeasuredTokens(decode, read_tokens(uncertainty / part / "token.parquet"))
        for part, decode in decodes.items()
        if decode.is_search and decode.is_ensemble
    ]
    for replicates in by_key(measured, lambda tokens: tokens.decode):
        yield from token_error_cells(replicates, rules_of(replicates[0].decode), evaluation)


def token_error_cells(
    replicates: Sequence[MeasuredTokens], rules: TokenRules | None, evaluation: Evaluation
) -> Iterator[Cell]:
    """Average precision in percent of every token measure, the token error rate, and deletions.

    Columns beyond the paper are `{measure}_word_max`, `{measure}_word_mean` and
    `{measure}_before_deletion`, with their base rates. A cell is the mean over replicates. Without
    `rules`, the cells say that the dictionary is missing. If a tokenizer of the ensemble's own
    makes other words than its tokens spell, the cells say so. Source: `tab:token-error-detection`;
    its baseline is the token error rate.
    """
    decodes = [measured.decode for measured in replicates]
    used = scorable_in_all(decodes)
    common = common_cell(decodes)
    names = [str(name) for name in replicates[0].tokens if name not in _POSITION_COLUMNS]
    plans = [*_paper_plans(names, evaluation), *_additional_plans(names, evaluation)]
    cells = [replace(common, column=plan.column, metric=plan.metric) for plan in plans]
    if rules is None or not used.any():
        why = decodes[0].why_not_scorable if rules else "the dictionary of tokens is missing"
        yield from (replace(cell, reason=why) for cell in cells)
        return
    try:
        labels = [token_labels(measured, used, rules) for measured in replicates]
    except UnspelledTextError as error:
        if not rules.is_own:
            raise
        why = "the tokenizer changes words when it joins tokens"
        _log.warning("%s: no errors of tokens, since %s (%s)", decodes[0].path, why, error)
        yield from (replace(cell, reason=why) for cell in cells)
        return
    resamples = evaluation.resampled(decodes[0], used)
    for cell, plan in zip(cells, plans, strict=True):
        eos = "include" if rules.with_eos or plan.every_eos else "exclude"
        filled = evaluation.mean_filled(
            cell,
            [plan.weighted(*pair) for pair in zip(replicates, labels, strict=True)],
            runs_of_each(decodes),
            resamples,
            f"{plan.signature}|align:{rules.aligner}|eos:{eos}"
            f"|{transcripts_signature(rules.transcripts)}",
        )
        yield replace(filled, reason=plan.why_undefined) if filled.value is None else filled


def _paper_plans(names: Sequence[str], evaluation: Evaluation) -> Iterator[_CellPlan]:
    for rule in precision_rules(evaluation.rules):
        signature = f"{evaluation.measures_signature}; {rule.signature}"
        for name in names:
            weighted = _detection(rule, name, _tokens)
            yield _CellPlan(name, rule.metric, weighted, "no token is an error", signature)
    error_rate = _wrong_percent(lambda labels: labels.tokens)
    yield _CellPlan("token_error_rate_percent", "percent", error_rate, "no token", "TER")
    yield _CellPlan(
        "deleted_words_percent", "percent", _deletion_rate, "no reference word", "deletions"
    )


def _additional_plans(names: Sequence[str], evaluation: Evaluation) -> Iterator[_CellPlan]:
    rule = precision_rules(evaluation.rules)[0]
    signature = f"{evaluation.measures_signature}; {rule.signature}"
    for name in names:
        for column, pooled in (("word_max", _largest_of_word), ("word_mean", _mean_of_word)):
            weighted, why = _detection(rule, name, pooled), "no word is an error"
            yield _CellPlan(
                f"{name}_{column}", rule.metric, weighted, why, f"{signature}|pieces:{column}"
            )
        weighted, why = _detection(rule, name, _sites), "no word is missing before a token"
        yield _CellPlan(
            f"{name}_before_deletion", rule.metric, weighted, why, signature, every_eos=True
        )
    wrong_words = _wrong_percent(lambda labels: labels.tokens.at(_word_starts(labels)))
    yield _CellPlan("wrong_words_percent", "percent", wrong_words, "no word", "wrong-words")
    gaps = _wrong_percent(lambda labels: labels.deletion_sites)
    yield _CellPlan("before_deletion_percent", "percent", gaps, "no token", "gaps", every_eos=True)


def _tokens(labels: TokenLabels, values: FloatArray) -> tuple[LabelledTokens, FloatArray]:
    return labels.tokens, values[labels.tokens.row]


def _sites(labels: TokenLabels, values: FloatArray) -> tuple[LabelledTokens, FloatArray]:
    return labels.deletion_sites, values[labels.deletion_sites.row]


def _largest_of_word(labels: TokenLabels, values: FloatArray) -> tuple[LabelledTokens, FloatArray]:
    starts = _word_starts(labels)
    return labels.tokens.at(starts), np.maximum.reduceat(values[labels.tokens.row], starts)


def _mean_of_word(labels: TokenLabels, values: FloatArray) -> tuple[LabelledTokens, FloatArray]:
    starts = _word_starts(labels)
    sizes = np.diff(starts, append=len(labels.word))
    return labels.tokens.at(starts), np.add.reduceat(values[labels.tokens.row], starts) / sizes


def _word_starts(labels: TokenLabels) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(labels.word, prepend=-1))


def _detection(rule: PrecisionRule, name: str, target: _Target) -> _TokenMetric:
    """Score by a rule how well the measure `name` detects tokens or words."""

    def weighted(measured: MeasuredTokens, labels: TokenLabels) -> WeightedMetric:
        labelled, scores = target(labels, measured.tokens[name].to_numpy(dtype=np.float64))
        return rule.score(labelled.wrong, scores, labelled.sentence)

    return weighted


def _wrong_percent(labelled_of: Callable[[TokenLabels], LabelledTokens]) -> _TokenMetric:
    """Percentage of labels that are wrong."""

    def weighted(_: MeasuredTokens, labels: TokenLabels) -> WeightedMetric:
        labelled, n_sentence = labelled_of(labels), len(labels.deleted)
        wrong = np.bincount(labelled.sentence, labelled.wrong, minlength=n_sentence)
        total = np.bincount(labelled.sentence, minlength=n_sentence).astype(np.float64)
        return lambda weights: 100 * ratio(weights @ wrong, weights @ total)

    return weighted


def _deletion_rate(_: MeasuredTokens, labels: TokenLabels) -> WeightedMetric:
    return lambda weights: 100 * ratio(weights @ labels.deleted, weights @ labels.reference_words)

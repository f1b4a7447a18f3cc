"""Cells of token-level error detection: average precision against labels of an alignment.

Beyond the paper, the same of words, by the largest or the mean score of their tokens, and of
missing words, by the score of the token that follows the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, groups_by, scorable_in_all, shared_cell
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.rules import PrecisionRule, precision_rules
from pipeline.metrics.token_labels import (
    Marked,
    MeasuredTokens,
    TokenLabels,
    TokenRules,
    read_tokens,
    token_labels,
)
from pipeline.quality.statistic import FloatArray, Statistic, ratio

_POSITION_COLUMNS = ("sentence_id", "hypothesis", "position", "token_id")


@dataclass(frozen=True)
class _Question:
    """One cell to fill: its statistic of a decode and its labels, and why it may have no value.

    `every_eos`: EOS takes part whatever the rules say.
    """

    column: str
    metric: str
    statistic: Callable[[MeasuredTokens, TokenLabels], Statistic]
    why_none: str
    signature: str
    every_eos: bool = False


def token_error_cells(
    group: Sequence[MeasuredTokens], rules: TokenRules | None, evaluation: Evaluation
) -> Iterator[Cell]:
    """Average precision in percent of every token measure, the token error rate and deletions.

    Beyond the paper `{measure}_word_max`, `{measure}_word_mean` and `{measure}_before_deletion`,
    with their base rates. `group` holds the decodes of one key, of which the mean is taken.
    Source: `tab:token-error-detection`; its baseline is the token error rate.
    """
    decodes = [one.decode for one in group]
    used = scorable_in_all(decodes)
    shared = shared_cell(decodes)
    names = [str(name) for name in group[0].tokens if name not in _POSITION_COLUMNS]
    questions = [*_of_the_paper(names, evaluation), *_beyond_the_paper(names, evaluation)]
    cells = [replace(shared, column=one.column, metric=one.metric) for one in questions]
    if rules is None or not used.any():
        why = decodes[0].why_not_scorable if rules else "the dictionary of tokens is missing"
        yield from (replace(cell, reason=why) for cell in cells)
        return
    labels = [token_labels(one, used, rules) for one in group]
    weights = evaluation.weights(used)
    for cell, question in zip(cells, questions, strict=True):
        eos = "include" if rules.with_eos or question.every_eos else "exclude"
        filled = evaluation.mean_filled(
            cell,
            [question.statistic(*one) for one in zip(group, labels, strict=True)],
            weights,
            f"{question.signature}|align:{rules.aligner}|eos:{eos}|case:mixed",
        )
        yield replace(filled, reason=question.why_none) if filled.value is None else filled


def _of_the_paper(names: Sequence[str], evaluation: Evaluation) -> Iterator[_Question]:
    for rule in precision_rules(evaluation.rules):
        signature = f"{evaluation.measures_signature}; {rule.signature}"
        for name in names:
            statistic = _detection(rule, name, _tokens)
            yield _Question(name, rule.metric, statistic, "no token is an error", signature)
    rate = _share(lambda labels: labels.tokens)
    yield _Question("token_error_rate_percent", "percent", rate, "no token", "TER")
    yield _Question(
        "deleted_words_percent", "percent", _deletion_rate, "no reference word", "deletions"
    )


def _beyond_the_paper(names: Sequence[str], evaluation: Evaluation) -> Iterator[_Question]:
    rule = precision_rules(evaluation.rules)[0]
    signature = f"{evaluation.measures_signature}; {rule.signature}"
    for name in names:
        for column, pooled in (("word_max", _largest), ("word_mean", _mean)):
            statistic, why = _detection(rule, name, pooled), "no word is an error"
            yield _Question(
                f"{name}_{column}", rule.metric, statistic, why, f"{signature}|pieces:{column}"
            )
        statistic, why = _detection(rule, name, _openings), "no word is missing before a token"
        yield _Question(
            f"{name}_before_deletion", rule.metric, statistic, why, signature, every_eos=True
        )
    wrong = _share(lambda labels: labels.tokens.at(_word_starts(labels)))
    yield _Question("wrong_words_percent", "percent", wrong, "no word", "wrong-words")
    gaps = _share(lambda labels: labels.openings)
    yield _Question("before_deletion_percent", "percent", gaps, "no token", "gaps", every_eos=True)


# (labels, a measure of every row) -> what is to be flagged, and the score of each
_Flagged = Callable[[TokenLabels, FloatArray], tuple[Marked, FloatArray]]


def _tokens(labels: TokenLabels, value: FloatArray) -> tuple[Marked, FloatArray]:
    return labels.tokens, value[labels.tokens.row]


def _openings(labels: TokenLabels, value: FloatArray) -> tuple[Marked, FloatArray]:
    return labels.openings, value[labels.openings.row]


def _largest(labels: TokenLabels, value: FloatArray) -> tuple[Marked, FloatArray]:
    starts = _word_starts(labels)
    return labels.tokens.at(starts), np.maximum.reduceat(value[labels.tokens.row], starts)


def _mean(labels: TokenLabels, value: FloatArray) -> tuple[Marked, FloatArray]:
    starts = _word_starts(labels)
    sizes = np.diff(starts, append=len(labels.word))
    return labels.tokens.at(starts), np.add.reduceat(value[labels.tokens.row], starts) / sizes


def _word_starts(labels: TokenLabels) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(labels.word, prepend=-1))


def _detection(
    rule: PrecisionRule, name: str, flagged: _Flagged
) -> Callable[[MeasuredTokens, TokenLabels], Statistic]:
    """The score of tokens or words as a function of the weights of their sentences."""

    def of(measured: MeasuredTokens, labels: TokenLabels) -> Statistic:
        marked, score = flagged(labels, measured.tokens[name].to_numpy(dtype=np.float64))
        return rule.statistic(marked.wrong, score, marked.sentence)

    return of


def _share(
    marked: Callable[[TokenLabels], Marked],
) -> Callable[[MeasuredTokens, TokenLabels], Statistic]:
    """How many percent are marked as wrong."""

    def of(_: MeasuredTokens, labels: TokenLabels) -> Statistic:
        these, n_sentence = marked(labels), len(labels.deleted)
        wrong = np.bincount(these.sentence, these.wrong, minlength=n_sentence)
        all_of_them = np.bincount(these.sentence, minlength=n_sentence).astype(np.float64)
        return lambda weights: 100 * ratio(weights @ wrong, weights @ all_of_them)

    return of


def _deletion_rate(_: MeasuredTokens, labels: TokenLabels) -> Statistic:
    return lambda weights: 100 * ratio(weights @ labels.deleted, weights @ labels.reference_words)


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

"""Cells of predictive performance: BLEU or WER and more of decodes, NLL by teacher forcing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, Cell
from pipeline.metrics.decodes import (
    Decode,
    groups,
    scorable_in_all,
    shared_cell,
    texts,
    with_spread,
)
from pipeline.metrics.evaluation import Evaluation
from pipeline.quality.statistic import FloatArray, weighted_mean
from pipeline.store import open_store


@dataclass(frozen=True)
class SentenceNll:
    """-ln P(reference) / L in nats per token, L counting EOS.

    `prex` and `expr` [sentence] under the two ensemble posteriors; `single` [member, sentence].
    """

    prex: FloatArray
    expr: FloatArray
    single: FloatArray


def sentence_nll(logprob: NDArray[np.floating], token_offset: NDArray[np.integer]) -> SentenceNll:
    """Length-normalised negative log-likelihood of each sentence.

    `logprob` [token, member] in nats, `token_offset` [sentence + 1], every sentence with at least
    one token. +inf where a posterior gives probability 0. Source: `eqn:ensemble-combinations`.
    """
    per_token = logprob.astype(np.float64)
    length = np.diff(token_offset)
    starts = token_offset[:-1]
    if not len(length):
        n_member = per_token.shape[1]
        return SentenceNll(np.empty(0), np.empty(0), np.empty((n_member, 0)))
    member_sum = np.add.reduceat(per_token, starts, axis=0)
    prex_sum = np.add.reduceat(_log_mean_exp(per_token), starts)
    return SentenceNll(
        -prex_sum / length, -_log_mean_exp(member_sum) / length, -(member_sum / length[:, None]).T
    )


def _log_mean_exp(logprob: FloatArray) -> FloatArray:
    """ln of the mean over members of P: [row, member] -> [row]."""
    highest = logprob.max(axis=1)
    # ln 0 of every member: no finite maximum to take out.
    shift = np.where(np.isfinite(highest), highest, 0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logprob - shift[:, None]).mean(axis=1)) + shift)


# (hypotheses, references) of one test set -> a number
Metric = Callable[[list[str], list[str]], float]


def quality_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """The task's quality metric and the one beside it, for each group of decodes of one key.

    'Single' is the mean over members, a kind of ensemble the mean over its trainings, with the
    standard deviation as spread; the interval is that of the mean, with all on the same resampled
    sentences. Source: `tab:nmt-bleu-asr-wer`; chrF and CER stand beyond it.
    """
    for group in groups(decodes):
        used = scorable_in_all(group)
        for metric in (evaluation.quality, evaluation.quality.beside):
            cell = replace(shared_cell(group), column=metric.name, metric=metric.name)
            if not used.any():
                yield replace(cell, reason=group[0].why_not_scorable)
                continue
            statistics = [metric.corpus(*texts(decode, used)) for decode in group]
            yield evaluation.mean_filled(
                cell, statistics, evaluation.weights(used), metric.signature()
            )


def extra_cells(
    decodes: Sequence[Decode], metrics: Mapping[str, Metric], evaluation: Evaluation
) -> Iterator[Cell]:
    """A user's own metrics of the in-domain decodes, as cells of their own names.

    Each is called once with the hypotheses and references of a decode and so has no interval.
    Raises DataError where one does not return a number.
    """
    for group in groups(decodes):
        used = scorable_in_all(group)
        if not group[0].in_domain:
            continue
        for name, metric in metrics.items():
            cell = replace(shared_cell(group), column=name, metric=name)
            if not used.any():
                yield replace(cell, reason=group[0].why_not_scorable)
                continue
            values = [_number(name, metric(*texts(decode, used))) for decode in group]
            cell = replace(
                cell, n=int(used.sum()), signature=evaluation.signed(cell, f"metric:{name}")
            )
            if np.isfinite(values).all():
                yield with_spread(replace(cell, value=float(np.mean(values))), values)
            else:
                yield replace(cell, reason=f"{name} gave no finite number")


def nll_cells(decodes: Sequence[Decode], single_of: str, evaluation: Evaluation) -> Iterator[Cell]:
    """Negative log-likelihood of the references in nats per token, from teacher-forced stores.

    Both posteriors of each group of ensembles, and of the members of the kind `single_of` their
    mean with its spread. Source: `tab:nmt-bleu-asr-wer`.
    """
    for group in groups(decodes):
        shared = replace(shared_cell(group), column="nll", metric="nll")
        nll = [_sentence_nll(decode) for decode in group]
        of_members = [member for one in nll for member in one.single]
        rows: dict[tuple[str, str], Sequence[FloatArray]]
        if shared.ensemble in ("single", CHECKPOINT_AVERAGE):
            rows = {(shared.ensemble, "-"): of_members}
        else:
            rows = {
                (shared.ensemble, "prex"): [one.prex for one in nll],
                (shared.ensemble, "expr"): [one.expr for one in nll],
            }
            if shared.ensemble == single_of:
                rows["single", "-"] = of_members
        for (ensemble, hypotheses), values in rows.items():
            cell = replace(shared, ensemble=ensemble, hypotheses=hypotheses)
            yield _nll_cell(cell, values, group[0].why_not_scorable, evaluation)


def _nll_cell(
    cell: Cell, values: Sequence[FloatArray], why_none: str, evaluation: Evaluation
) -> Cell:
    """The cell of the mean over values [sentence] of a group, NaN where there is no reference."""
    used = np.asarray(~np.isnan(np.stack(values)).any(axis=0))
    if not used.any():
        return replace(cell, reason=why_none)
    infinite = np.isinf(np.stack(values)).any(axis=0)
    if infinite.any():
        reason = f"{int(infinite.sum())} references have probability 0"
        return replace(cell, n=int(used.sum()), reason=reason)
    statistics = [weighted_mean(one[used]) for one in values]
    return evaluation.mean_filled(cell, statistics, evaluation.weights(used), "NLL|mean:sentence")


def _sentence_nll(decode: Decode) -> SentenceNll:
    """Of every sentence, NaN where it has no reference."""
    with open_store(decode.path) as store:
        forced = np.diff(store.hypothesis_offset) > 0
        nll = sentence_nll(store.read("/token/logprob"), store.token_offset)

    def on_all(values: FloatArray) -> FloatArray:
        every: FloatArray = np.full((*values.shape[:-1], len(forced)), np.nan)
        every[..., forced] = values
        return every

    return SentenceNll(on_all(nll.prex), on_all(nll.expr), on_all(nll.single))


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value)
    raise DataError(f"metrics.extra_metrics.{name} must return a number, got {value!r}")

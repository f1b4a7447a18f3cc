"""Cells of predictive performance: quality, a user's own metrics, and NLL by teacher forcing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, Cell
from pipeline.metrics.decodes import (
    Decode,
    common_cell,
    decodes_by_key,
    runs_of_each,
    scorable_in_all,
)
from pipeline.metrics.evaluation import Evaluation, with_spread
from pipeline.metrics.training_runs import joined_runs
from pipeline.quality.weighted_metric import FloatArray, weighted_mean
from pipeline.statistics.posterior import sequence_logprob
from pipeline.store import open_store


@dataclass(frozen=True)
class SentenceNll:
    """-ln P(reference) / L in nats per token, where L counts EOS.

    `prex` and `expr` are [sentence], under the two posteriors; `single` is [member, sentence].
    """

    prex: FloatArray
    expr: FloatArray
    single: FloatArray


def sentence_nll(logprob: NDArray[np.floating], token_offset: NDArray[np.integer]) -> SentenceNll:
    """Length-normalised negative log-likelihood of each sentence.

    `logprob` [token, member] is in nats; `token_offset` is [sentence + 1]. Every sentence has at
    least one token. Values are +inf where a posterior gives probability 0. Source:
    `eqn:ensemble-combinations`.
    """
    length = np.diff(token_offset)
    if not len(length):
        return SentenceNll(np.empty(0), np.empty(0), np.empty((logprob.shape[1], 0)))
    sums = sequence_logprob(logprob.astype(np.float64), token_offset)
    return SentenceNll(-sums.prex / length, -sums.expr / length, -(sums.member / length[:, None]).T)


_POSTERIORS = ("prex", "expr")
# (hypotheses, references) of one test set -> a number
UserMetric = Callable[[list[str], list[str]], float]


def quality_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """The task's quality metric and its secondary metric, for each set of replicates.

    'Single' is the mean over members, and a kind of ensemble the mean over its training runs, with
    the standard deviation as spread. The interval is for the mean, with all replicates on the
    same resampled sentences. Source: `tab:nmt-bleu-asr-wer`; chrF and CER are additions.
    """
    for replicates in decodes_by_key(decodes):
        used = scorable_in_all(replicates)
        for metric in (evaluation.quality, evaluation.quality.secondary):
            cell = replace(common_cell(replicates), column=metric.name, metric=metric.name)
            if not used.any():
                yield replace(cell, reason=replicates[0].why_not_scorable)
                continue
            weighted = [metric.weighted(*decode.scored_texts(used)) for decode in replicates]
            resamples = evaluation.resampled(replicates[0], used)
            yield evaluation.mean_filled(
                cell, weighted, runs_of_each(replicates), resamples, metric.signature()
            )


def extra_cells(
    decodes: Sequence[Decode], metrics: Mapping[str, UserMetric], evaluation: Evaluation
) -> Iterator[Cell]:
    """A user's own metrics of the in-domain decodes, as cells with the names of the metrics.

    A metric is called once per decode, with all hypotheses and references, so its cells have no
    interval. Raises DataError if it does not return a number.
    """
    for replicates in decodes_by_key(decodes):
        used = scorable_in_all(replicates)
        if not replicates[0].in_domain:
            continue
        for name, metric in metrics.items():
            cell = replace(common_cell(replicates), column=name, metric=name)
            if not used.any():
                yield replace(cell, reason=replicates[0].why_not_scorable)
                continue
            values = [_user_value(name, metric, decode, used) for decode in replicates]
            cell = replace(
                cell, n=int(used.sum()), signature=evaluation.signed(cell, f"metric:{name}")
            )
            if np.isfinite(values).all():
                yield with_spread(replace(cell, value=float(np.mean(values))), values)
            else:
                yield replace(cell, reason=f"{name} gave no finite number")


def _user_value(name: str, metric: UserMetric, decode: Decode, used: NDArray[np.bool_]) -> float:
    try:
        value = metric(*decode.scored_texts(used))
    except Exception as error:
        raise DataError(
            f"metrics.extra_metrics.{name}: failed on {decode.path} ({type(error).__name__}: "
            f"{error}). It must be a function of hypotheses and references."
        ) from error
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value)
    raise DataError(
        f"metrics.extra_metrics.{name}: did not return a number (got {value!r}). "
        "Return an int or a float."
    )


# (training runs, values [sentence]) of each replicate
_Replicates = Sequence[tuple[str, FloatArray]]


def nll_cells(
    decodes: Sequence[Decode], single_of: str, averaged: Collection[str], evaluation: Evaluation
) -> Iterator[Cell]:
    """Negative log-likelihood of the references in nats per token, from teacher-forced stores.

    There is a cell for each posterior of each kind of ensemble, and a cell for the mean over the
    members of the kind `single_of`. Members of the training runs `averaged` also give the cell of
    averages of checkpoints. The values of ensembles without one of their training runs are recorded
    as replicates. Source: `tab:nmt-bleu-asr-wer`.
    """
    for replicates in decodes_by_key(decodes):
        shared = replace(common_cell(replicates), column="nll", metric="nll")
        nll = [_read_sentence_nll(decode) for decode in replicates]
        of_members = [
            pair
            for decode, of_decode in zip(replicates, nll, strict=True)
            for pair in zip(decode.member_runs, of_decode.single, strict=True)
        ]
        rows: dict[tuple[str, str], _Replicates] = {}
        if shared.ensemble not in ("single", CHECKPOINT_AVERAGE):
            runs = runs_of_each(replicates)
            for name in _POSTERIORS:
                of_posterior = [getattr(of_decode, name) for of_decode in nll]
                rows[shared.ensemble, name] = list(zip(runs, of_posterior, strict=True))
            if shared.ensemble == single_of:
                rows["single", "-"] = of_members
                rows[CHECKPOINT_AVERAGE, "-"] = [pair for pair in of_members if pair[0] in averaged]
                _record_leave_one_out(shared, replicates, evaluation)
        else:
            rows[shared.ensemble, "-"] = of_members
        for (ensemble, hypotheses), values in rows.items():
            if values:
                cell = replace(shared, ensemble=ensemble, hypotheses=hypotheses)
                if hypotheses == "-":
                    runs_of_row = joined_runs(run for run, _ in values)
                    cell = replace(cell, runs=runs_of_row, members=1)
                yield _nll_cell(cell, values, replicates[0], evaluation)


def _record_leave_one_out(cell: Cell, decodes: Sequence[Decode], evaluation: Evaluation) -> None:
    """Record the NLL of ensembles without one of their training runs, where it is finite."""
    for decode in decodes:
        for left_out in decode.runs_to_leave_out:
            kept = np.array([run != left_out for run in decode.member_runs])
            nll = _read_sentence_nll(decode, kept)
            runs = joined_runs(run for run in decode.runs if run != left_out)
            for name in _POSTERIORS:
                key = replace(cell, hypotheses=name).key
                values = getattr(nll, name)
                values = values[~np.isnan(values)]
                if len(values) and np.isfinite(values).all():
                    evaluation.record_replicates(key, {runs: float(values.mean())})


def _nll_cell(cell: Cell, replicates: _Replicates, decode: Decode, evaluation: Evaluation) -> Cell:
    """The mean over replicates of values [sentence], which are NaN without a reference.

    `decode` is one of their decodes.
    """
    runs, values = zip(*replicates, strict=True)
    used = np.asarray(~np.isnan(np.stack(values)).any(axis=0))
    if not used.any():
        return replace(cell, reason=decode.why_not_scorable)
    infinite = np.isinf(np.stack(values)).any(axis=0)
    if infinite.any():
        reason = f"{int(infinite.sum())} references have probability 0"
        return replace(cell, n=int(used.sum()), reason=reason)
    metrics = [weighted_mean(nll[used]) for nll in values]
    resamples = evaluation.resampled(decode, used)
    return evaluation.mean_filled(cell, metrics, runs, resamples, "NLL|mean:sentence")


def _read_sentence_nll(
    decode: Decode, members: NDArray[np.bool_] | slice = slice(None)
) -> SentenceNll:
    """NLL of every sentence of a store, by all or some members; NaN for one without a reference."""
    with open_store(decode.path) as store:
        forced = np.diff(store.hypothesis_offset) > 0
        nll = sentence_nll(store.read("/token/logprob")[:, members], store.token_offset)

    def of_all_sentences(values: FloatArray) -> FloatArray:
        all_values: FloatArray = np.full((*values.shape[:-1], len(forced)), np.nan)
        all_values[..., forced] = values
        return all_values

    return SentenceNll(
        of_all_sentences(nll.prex), of_all_sentences(nll.expr), of_all_sentences(nll.single)
    )

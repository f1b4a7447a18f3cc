"""Cells of predictive performance: quality, a user's own metrics, and NLL by teacher forcing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, Cell
from pipeline.metrics.decodes import Decode, common_cell, decodes_by_key, scorable_in_all
from pipeline.metrics.evaluation import Evaluation, with_spread
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
            yield evaluation.mean_filled(cell, weighted, resamples, metric.signature())


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
            values = [_number(name, metric(*decode.scored_texts(used))) for decode in replicates]
            cell = replace(
                cell, n=int(used.sum()), signature=evaluation.signed(cell, f"metric:{name}")
            )
            if np.isfinite(values).all():
                yield with_spread(replace(cell, value=float(np.mean(values))), values)
            else:
                yield replace(cell, reason=f"{name} gave no finite number")


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value)
    raise DataError(
        f"metrics.extra_metrics.{name}: did not return a number (got {value!r}). "
        "Return an int or a float."
    )


def nll_cells(decodes: Sequence[Decode], single_of: str, evaluation: Evaluation) -> Iterator[Cell]:
    """Negative log-likelihood of the references in nats per token, from teacher-forced stores.

    There is a cell for each posterior of each kind of ensemble, and a cell for the mean over the
    members of the kind `single_of`. Source: `tab:nmt-bleu-asr-wer`.
    """
    for replicates in decodes_by_key(decodes):
        shared = replace(common_cell(replicates), column="nll", metric="nll")
        nll = [_read_sentence_nll(decode) for decode in replicates]
        of_members = [member for decode_nll in nll for member in decode_nll.single]
        rows: dict[tuple[str, str], Sequence[FloatArray]]
        if shared.ensemble in ("single", CHECKPOINT_AVERAGE):
            rows = {(shared.ensemble, "-"): of_members}
        else:
            rows = {
                (shared.ensemble, "prex"): [decode_nll.prex for decode_nll in nll],
                (shared.ensemble, "expr"): [decode_nll.expr for decode_nll in nll],
            }
            if shared.ensemble == single_of:
                rows["single", "-"] = of_members
        for (ensemble, hypotheses), values in rows.items():
            cell = replace(shared, ensemble=ensemble, hypotheses=hypotheses)
            yield _nll_cell(cell, values, replicates[0], evaluation)


def _nll_cell(
    cell: Cell, values: Sequence[FloatArray], decode: Decode, evaluation: Evaluation
) -> Cell:
    """The mean over replicates of values [sentence], which are NaN without a reference.

    `decode` is one of the replicates.
    """
    used = np.asarray(~np.isnan(np.stack(values)).any(axis=0))
    if not used.any():
        return replace(cell, reason=decode.why_not_scorable)
    infinite = np.isinf(np.stack(values)).any(axis=0)
    if infinite.any():
        reason = f"{int(infinite.sum())} references have probability 0"
        return replace(cell, n=int(used.sum()), reason=reason)
    metrics = [weighted_mean(nll[used]) for nll in values]
    resamples = evaluation.resampled(decode, used)
    return evaluation.mean_filled(cell, metrics, resamples, "NLL|mean:sentence")


def _read_sentence_nll(decode: Decode) -> SentenceNll:
    """NLL of every sentence of a store; NaN if a sentence has no reference."""
    with open_store(decode.path) as store:
        forced = np.diff(store.hypothesis_offset) > 0
        nll = sentence_nll(store.read("/token/logprob"), store.token_offset)

    def of_all_sentences(values: FloatArray) -> FloatArray:
        all_values: FloatArray = np.full((*values.shape[:-1], len(forced)), np.nan)
        all_values[..., forced] = values
        return all_values

    return SentenceNll(
        of_all_sentences(nll.prex), of_all_sentences(nll.expr), of_all_sentences(nll.single)
    )

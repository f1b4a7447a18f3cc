"""Cells of predictive performance: BLEU or WER of decodes, NLL by teacher forcing, and extras."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.likelihood import sentence_nll
from pipeline.metrics.statistic import FloatArray, Statistic, point, weighted_mean
from pipeline.parts import digest
from pipeline.store import open_store

# (hypotheses, references) of one test set -> a number
Metric = Callable[[list[str], list[str]], float]

_ONE_MEMBER = "one member: no spread"


def quality_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """The task's quality metric, once for each decode of the ensemble and once for its members.

    'Single' is the mean over members with the standard deviation over them as spread; its interval
    is that of the mean, with the members on the same resampled sentences.
    Source: `tab:nmt-bleu-asr-wer`.
    """
    quality = evaluation.quality
    for group in _groups(decodes):
        cell = replace(_shared(group), column=quality.name, metric=quality.name)
        used = _scorable_in_all(group)
        if not used.any():
            yield replace(cell, reason=group[0].why_not_scorable)
            continue
        statistics = [quality.corpus(*_texts(decode, used)) for decode in group]
        values = [point(one, int(used.sum())) for one in statistics]
        filled = evaluation.filled(
            cell, _mean(statistics), evaluation.weights(used), quality.signature()
        )
        yield _with_spread(filled, values)


def extra_cells(
    decodes: Sequence[Decode], metrics: Mapping[str, Metric], evaluation: Evaluation
) -> Iterator[Cell]:
    """A user's own metrics of the in-domain decodes, as cells of their own names.

    Each is called once with the hypotheses and references of a decode and so has no interval.
    Raises DataError where one does not return a number.
    """
    for group in _groups(decodes):
        used = _scorable_in_all(group)
        if not group[0].in_domain:
            continue
        for name, metric in metrics.items():
            cell = replace(_shared(group), column=name, metric=name)
            if not used.any():
                yield replace(cell, reason=group[0].why_not_scorable)
                continue
            values = [_number(name, metric(*_texts(decode, used))) for decode in group]
            cell = replace(
                cell, n=int(used.sum()), signature=evaluation.signed(cell, f"metric:{name}")
            )
            if np.isfinite(values).all():
                mean = float(np.mean(values))
                yield _with_spread(replace(cell, value=mean), values)
            else:
                yield replace(cell, reason=f"{name} gave no finite number")


def nll_cells(decodes: Sequence[Decode], evaluation: Evaluation) -> Iterator[Cell]:
    """Negative log-likelihood of the references in nats per token, from teacher-forced stores.

    Three cells a store: both posteriors, and the mean over its members with their spread.
    Source: `tab:nmt-bleu-asr-wer`.
    """
    for decode in decodes:
        with open_store(decode.path) as store:
            used = np.diff(store.hypothesis_offset) > 0
            nll = sentence_nll(store.read("/token/logprob"), store.token_offset)
        shared = replace(decode.cell, column="nll", metric="nll")
        rows = {
            (shared.ensemble, "prex"): nll.prex,
            (shared.ensemble, "expr"): nll.expr,
            ("single", "-"): nll.single.mean(axis=0),
        }
        for (ensemble, hypotheses), per_sentence in rows.items():
            cell = replace(shared, ensemble=ensemble, hypotheses=hypotheses)
            if not used.any():
                yield replace(cell, reason=decode.why_not_scorable)
            elif not np.isfinite(per_sentence).all():
                n_zero = int((~np.isfinite(per_sentence)).sum())
                yield replace(
                    cell, n=len(per_sentence), reason=f"{n_zero} references have probability 0"
                )
            else:
                filled = evaluation.filled(
                    cell, weighted_mean(per_sentence), evaluation.weights(used), "NLL|mean:sentence"
                )
                members = nll.single.mean(axis=1) if ensemble == "single" else []
                yield _with_spread(filled, members)


def _groups(decodes: Sequence[Decode]) -> Iterator[list[Decode]]:
    """Each decode of an ensemble alone; those of single members together, by test set."""
    groups: dict[tuple[str, ...], list[Decode]] = {}
    for decode in decodes:
        groups.setdefault(decode.cell.key, []).append(decode)
    yield from groups.values()


def _shared(group: Sequence[Decode]) -> Cell:
    """What the cells of a group share; the signatures of several members come as one digest."""
    cell = group[0].cell
    if cell.ensemble != "single":
        return cell
    signatures = digest(*(decode.cell.signature for decode in group))[:12]
    signature = (
        f"task:{cell.task}|set:{cell.test_set}|members:{len(group)}|regime:{cell.regime}"
        f"|decodes:{signatures}"
    )
    return replace(cell, signature=signature)


def _scorable_in_all(group: Sequence[Decode]) -> NDArray[np.bool_]:
    sizes = {len(decode.texts) for decode in group}
    if len(sizes) > 1:
        raise DataError(
            f"the decodes of {group[0].cell.test_set} must list the same sentences, "
            f"got {sorted(sizes)}"
        )
    return np.asarray(np.stack([decode.scorable for decode in group]).all(axis=0))


def _texts(decode: Decode, used: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
    places = np.flatnonzero(used)
    return [str(decode.texts[i]) for i in places], [str(decode.references[i]) for i in places]


def _mean(statistics: Sequence[Statistic]) -> Statistic:
    def mean(weights: FloatArray) -> FloatArray:
        total: FloatArray = np.sum([one(weights) for one in statistics], axis=0)
        return total / len(statistics)

    return mean


def _with_spread(cell: Cell, member_values: Sequence[float] | FloatArray) -> Cell:
    """A cell of single members with their standard deviation; other cells as they are."""
    if cell.ensemble != "single":
        return cell
    if len(member_values) == 1:
        return replace(cell, reason=cell.reason or _ONE_MEMBER)
    return replace(cell, spread=float(np.std(member_values, ddof=1)))


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value)
    raise DataError(f"metrics.extra_metrics.{name} must return a number, got {value!r}")

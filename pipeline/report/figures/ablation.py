"""Predictive performance against the number of members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.metrics.performance import sentence_nll
from pipeline.quality.weighted_metric import point_estimate
from pipeline.report.figures.drawing import Sheet, line, panels, shared_legend, whole_numbers
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.statistics.subsets import subsets
from pipeline.store import SUBSET, open_store
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_SUBSETS = 20
_COLUMNS = ["test_set", "metric", "hypotheses", "members", "subsets", "mean", "spread"]
_UNITS = {"nll": "NLL, nats per token", "bleu": "BLEU, percent", "wer_percent": "WER, percent"}


def ablation(evidence: TaskEvidence) -> Sheet:
    """NLL, and BLEU or WER, against the number of members, with two standard deviations.

    Data: test_set, metric, hypotheses (the combination), members (their number), subsets (the
    number of subsets of that size), and their mean and spread (standard deviation, empty for a
    single subset). NLL is computed for all subsets of a size, or 20 drawn with the run's seed; BLEU
    and WER for the subsets that were decoded. Source: `fig-apn:ablation-prediction`,
    `fig-apn:ablation-prediction-asr`.
    """
    values = [*_nll_values(evidence), *_quality_values(evidence)]
    frame = pd.DataFrame(values, columns=[*_COLUMNS[:4], "value"])
    data = pd.DataFrame(columns=_COLUMNS)
    if len(frame):
        grouped = frame.groupby(_COLUMNS[:4], sort=False)["value"]
        data = grouped.agg(subsets="count", mean="mean", spread="std").reset_index()
    return Sheet(
        "Performance against the number of members",
        "Mean over subsets of the ensemble. The shaded band is two standard deviations wide on "
        f"each side. NLL uses all subsets of a size, or {_MOST_SUBSETS} random ones. BLEU and WER "
        "use the subsets that were decoded.",
        data,
        _draw,
        "no in-domain test set was decoded or scored by teacher forcing",
    )


def _nll_values(evidence: TaskEvidence) -> Iterator[tuple[str, str, str, int, float]]:
    for test_set, part in evidence.in_domain(evidence.forced()).items():
        with open_store(evidence.decodes[part].path) as store:
            logprob, offset = store.read("/token/logprob"), store.token_offset
        for size in range(1, logprob.shape[1] + 1):
            for members in subsets(logprob.shape[1], size, _MOST_SUBSETS, evidence.seed):
                nll = sentence_nll(logprob[:, members], offset)
                for hypotheses, values in (("prex", nll.prex), ("expr", nll.expr)):
                    if len(values) and np.isfinite(values).all():
                        yield test_set, "nll", hypotheses, size, float(values.mean())


def _quality_values(evidence: TaskEvidence) -> Iterator[tuple[str, str, str, int, float]]:
    """BLEU or WER of single members, of decoded subsets and of the whole ensemble."""
    quality = evidence.quality
    whole_parts = {part for name in POSTERIORS for part in evidence.searched(name).values()}
    whole = {name for part in whole_parts for name in evidence.decodes[part].members}
    for part, decode in evidence.decodes.items():
        cell, used = decode.cell, decode.scorable
        is_shown = part in whole_parts or (
            decode.is_search and cell.ensemble in ("single", SUBSET) and {*decode.members} <= whole
        )
        if not is_shown or not decode.in_domain or not used.any():
            continue
        metric = quality.weighted(*decode.scored_texts(used))
        value = point_estimate(metric, int(used.sum()))
        # A single member is the same under both combinations.
        for hypotheses in POSTERIORS if cell.hypotheses == "-" else (cell.hypotheses,):
            yield cell.test_set, quality.name, hypotheses, len(decode.members), value


def _draw(data: pd.DataFrame) -> Figure:
    test_sets = list(dict.fromkeys(data["test_set"]))
    metrics = dict.fromkeys(zip(data["test_set"], data["metric"], strict=True))
    shown = sorted(metrics, key=lambda pair: test_sets.index(pair[0]))
    figure, axes = panels(len(shown), most_columns=2)
    for axis, (test_set, metric) in zip(axes, shown, strict=True):
        rows = data[(data["test_set"] == test_set) & (data["metric"] == metric)]
        for index, (name, label) in enumerate(POSTERIORS.items()):
            points = rows[rows["hypotheses"] == name].sort_values("members")
            if points.empty:
                continue
            style = line(index, len(points))
            axis.plot(points["members"], points["mean"], label=label, **style)
            width = 2 * points["spread"].fillna(0)
            low, high = points["mean"] - width, points["mean"] + width
            if (points["members"].diff().dropna() == 1).all():
                shade = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                axis.fill_between(points["members"], low, high, **shade)
            else:
                # A band would suggest results for sizes that were not decoded.
                axis.vlines(points["members"], low, high, color=style["color"])
        axis.set_title(test_set)
        axis.set_xlabel("members")
        axis.set_ylabel(_UNITS[metric])
        whole_numbers(axis)
    shared_legend(figure, axes)
    return figure

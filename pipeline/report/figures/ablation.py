"""Predictive performance over the number of members of an ensemble."""

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
    """NLL, and BLEU or WER, over the number of members, with two standard deviations over subsets.

    Data: test_set, metric, hypotheses (the combination), members (how many), subsets (how many of
    that size), their mean and spread (standard deviation, empty for a single subset). NLL is of
    subsets of the teacher-forced ensemble: all, or 20 drawn with the run's seed; BLEU and WER of
    the subsets that were decoded. Source: `fig-apn:ablation-prediction`,
    `fig-apn:ablation-prediction-asr`.
    """
    values = [*_nll_values(evidence), *_quality_values(evidence)]
    frame = pd.DataFrame(values, columns=[*_COLUMNS[:4], "value"])
    data = pd.DataFrame(columns=_COLUMNS)
    if len(frame):
        grouped = frame.groupby(_COLUMNS[:4], sort=False)["value"]
        data = grouped.agg(subsets="count", mean="mean", spread="std").reset_index()
    return Sheet(
        "Performance over the number of members",
        "Mean over subsets of the ensemble; shading: two standard deviations over them. "
        f"NLL: all subsets of a size, or {_MOST_SUBSETS} drawn ones; BLEU and WER: the subsets "
        "that were decoded.",
        data,
        _draw,
        "no in-domain test set was decoded or teacher-forced",
    )


def _nll_values(evidence: TaskEvidence) -> Iterator[tuple[str, str, str, int, float]]:
    for test_set, part in evidence.in_domain(evidence.forced()).items():
        with open_store(evidence.decodes[part].path) as store:
            logprob, offset = store.read("/token/logprob"), store.token_offset
        for size in range(1, logprob.shape[1] + 1):
            for places in subsets(logprob.shape[1], size, _MOST_SUBSETS, evidence.seed):
                nll = sentence_nll(logprob[:, places], offset)
                for hypotheses, values in (("prex", nll.prex), ("expr", nll.expr)):
                    if len(values) and np.isfinite(values).all():
                        yield test_set, "nll", hypotheses, size, float(values.mean())


def _quality_values(evidence: TaskEvidence) -> Iterator[tuple[str, str, str, int, float]]:
    """Quality of what single members, decoded subsets and the whole ensemble found."""
    quality = evidence.quality
    wholes = set(evidence.searched("prex").values()) | set(evidence.searched("expr").values())
    whole = {name for part in wholes for name in evidence.decodes[part].members}
    for part, decode in evidence.decodes.items():
        cell, used = decode.cell, decode.scorable
        counts = part in wholes or (
            decode.is_search and cell.ensemble in ("single", SUBSET) and {*decode.members} <= whole
        )
        if not counts or not decode.in_domain or not used.any():
            continue
        metric = quality.weighted(*decode.scored_texts(used))
        value = point_estimate(metric, int(used.sum()))
        # A single member is its own ensemble under either combination.
        for hypotheses in POSTERIORS if cell.hypotheses == "-" else (cell.hypotheses,):
            yield cell.test_set, quality.name, hypotheses, len(decode.members), value


def _places(test_sets: pd.Series[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(test_sets))}


def _draw(data: pd.DataFrame) -> Figure:
    by_set = data.sort_values(
        "test_set", key=lambda names: names.map(_places(names)), kind="stable"
    )
    shown = list(dict.fromkeys(zip(by_set["test_set"], by_set["metric"], strict=True)))
    figure, axes = panels(len(shown), most_columns=2)
    for axis, (test_set, metric) in zip(axes, shown, strict=True):
        rows = data[(data["test_set"] == test_set) & (data["metric"] == metric)]
        for place, (name, label) in enumerate(POSTERIORS.items()):
            points = rows[rows["hypotheses"] == name].sort_values("members")
            if points.empty:
                continue
            style = line(place, len(points))
            axis.plot(points["members"], points["mean"], label=label, **style)
            width = 2 * points["spread"].fillna(0)
            low, high = points["mean"] - width, points["mean"] + width
            if (points["members"].diff().dropna() == 1).all():
                shade = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                axis.fill_between(points["members"], low, high, **shade)
            else:
                # A band would speak of sizes that nobody decoded.
                axis.vlines(points["members"], low, high, color=style["color"])
        axis.set_title(test_set)
        axis.set_xlabel("members")
        axis.set_ylabel(_UNITS[metric])
        whole_numbers(axis)
    shared_legend(figure, axes)
    return figure
